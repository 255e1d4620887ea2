rule telemetry_summary:
    input:
        inventory="results/{run}/inventory.json",
        traces="results/{run}/tables/trace_summary.json",
    output:
        summary="results/{run}/telemetry_summary.json",
    log:
        "results/{run}/steps/telemetry_summary.log",
    benchmark:
        "results/{run}/steps/telemetry_summary.tsv"
    conda:
        "../envs/perfproof.yaml"
    shell:
        "python -m perfproof.telemetry.summarize --inventory {input.inventory} "
        "--traces {input.traces} --out {output.summary} 2>&1 | tee {log}"
