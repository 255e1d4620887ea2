rule trace_tables:
    input:
        inventory="results/{run}/inventory.json",
    output:
        summary="results/{run}/tables/trace_summary.json",
    log:
        "results/{run}/steps/trace_tables.log",
    benchmark:
        "results/{run}/steps/trace_tables.tsv"
    conda:
        "../envs/perfproof.yaml"
    params:
        out_dir=subpath(input.inventory, parent=True),
    shell:
        "python -m perfproof.traces.tables --inventory {input.inventory} "
        "--out-dir {params.out_dir} 2>&1 | tee {log}"
