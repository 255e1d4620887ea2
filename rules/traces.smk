from perfproof.traces.comparison import Comparison

COMPARISON = Comparison(PLAN.settings)


rule trace_tables:
    input:
        inventory="results/{run}/inventory.json",
    output:
        summary="results/{run}/tables/trace_summary.json",
        quality="results/{run}/tables/trace_quality.json",
    log:
        "results/{run}/steps/trace_tables.log",
    benchmark:
        "results/{run}/steps/trace_tables.tsv"
    conda:
        "../envs/perfproof.yaml"
    threads: 8
    params:
        out_dir=subpath(input.inventory, parent=True),
    shell:
        "python -m perfproof.traces.tables --inventory {input.inventory} "
        "--out-dir {params.out_dir} --jobs {threads} 2>&1 | tee {log}"


rule tracelens:
    input:
        inventory="results/{run}/inventory.json",
        traces="results/{run}/tables/trace_summary.json",
    output:
        record="results/{run}/tracelens/backend.json",
    log:
        "results/{run}/steps/tracelens.log",
    benchmark:
        "results/{run}/steps/tracelens.tsv"
    conda:
        "../envs/perfproof.yaml"
    threads: 4
    params:
        backend=PLAN.settings.trace_backend,
    shell:
        "python -m perfproof.tracelens.run --inventory {input.inventory} --traces {input.traces} "
        "--backend {params.backend} --jobs {threads} --out {output.record} 2>&1 | tee {log}"


rule trace_compare:
    input:
        a=COMPARISON.files_a,
        b=COMPARISON.files_b,
    output:
        record=f"{COMPARISON.folder}/trace_comparison.json",
        page=f"{COMPARISON.folder}/trace_comparison.md",
    log:
        f"{COMPARISON.folder}/trace_compare.log",
    conda:
        "../envs/perfproof.yaml"
    params:
        a=COMPARISON.paths["trace_a"],
        b=COMPARISON.paths["trace_b"],
        out_dir=subpath(output.record, parent=True),
    shell:
        "python -m perfproof.traces.compare {params.a:q} --versus {params.b:q} "
        "--out-dir {params.out_dir} 2>&1 | tee {log}"
