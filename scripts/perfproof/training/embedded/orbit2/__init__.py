"""Relative of ORBIT-2's diffusion downscaler: residual denoising with attention over variables."""
