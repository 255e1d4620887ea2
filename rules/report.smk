rule combine:
    input:
        inventory="results/{run}/inventory.json",
        foms="results/{run}/foms.json",
        traces="results/{run}/tables/trace_summary.json",
        telemetry="results/{run}/telemetry_summary.json",
        verified=collect(
            "results/{{run}}/verified/{source}.json", source=["trace", "telemetry"]
        ),
        backend="results/{run}/tracelens/backend.json",
        by_author=AUTHORS.verified,
        authors=AUTHORS.records,
        probe=LOOP.probe_files,
    output:
        report="results/{run}/combined_report.json",
    log:
        "results/{run}/steps/combine.log",
    benchmark:
        "results/{run}/steps/combine.tsv"
    conda:
        "../envs/perfproof.yaml"
    shell:
        "python -m perfproof.report.combine --inventory {input.inventory} --foms {input.foms} "
        "--traces {input.traces} --telemetry {input.telemetry} --verified {input.verified} "
        "{input.by_author} --authors {input.authors} --backend {input.backend} "
        "--probe {input.probe} --out {output.report} 2>&1 | tee {log}"


rule render:
    input:
        report="results/{run}/combined_report.json",
        traces="results/{run}/tables/trace_summary.json",
    output:
        html=report(
            "results/{run}/combined_report.html",
            caption="../report/combined.rst",
            category="Performance report",
            labels={"run": "{run}", "what": "report"},
        ),
        markdown="results/{run}/combined_report.md",
    log:
        "results/{run}/steps/render.log",
    benchmark:
        "results/{run}/steps/render.tsv"
    conda:
        "../envs/perfproof.yaml"
    shell:
        "python -m perfproof.report.render --report {input.report} --traces {input.traces} "
        "--markdown {output.markdown} --html {output.html} 2>&1 | tee {log}"
