"""Claims by other authors: any program, or any model behind an OpenAI-compatible endpoint.

The contract is enforced here; what an author says is judged by the verifiers like any other claim.
"""
