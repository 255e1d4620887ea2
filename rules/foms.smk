rule foms:
    input:
        inventory="results/{run}/inventory.json",
        traces="results/{run}/tables/trace_summary.json",
        telemetry="results/{run}/telemetry_summary.json",
    output:
        foms="results/{run}/foms.json",
    log:
        "results/{run}/steps/foms.log",
    benchmark:
        "results/{run}/steps/foms.tsv"
    conda:
        "../envs/perfproof.yaml"
    shell:
        "python -m perfproof.foms.extract --inventory {input.inventory} --traces {input.traces} "
        "--telemetry {input.telemetry} --out {output.foms} 2>&1 | tee {log}"
