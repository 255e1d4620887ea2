from perfproof.claims.authors.plan import Authors

AUTHORS = Authors(PLAN.settings)


rule claim_from_trace:
    input:
        inventory="results/{run}/inventory.json",
        traces="results/{run}/tables/trace_summary.json",
        foms="results/{run}/foms.json",
        levers=PLAN.lever_catalog,
    output:
        claims="results/{run}/claims/trace.json",
    log:
        "results/{run}/steps/claim_from_trace.log",
    benchmark:
        "results/{run}/steps/claim_from_trace.tsv"
    conda:
        "../envs/perfproof.yaml"
    shell:
        "python -m perfproof.claims.analyze_trace --inventory {input.inventory} "
        "--traces {input.traces} --foms {input.foms} --levers {input.levers} "
        "--out {output.claims} 2>&1 | tee {log}"


rule claim_from_telemetry:
    input:
        inventory="results/{run}/inventory.json",
        telemetry="results/{run}/telemetry_summary.json",
        foms="results/{run}/foms.json",
        levers=PLAN.lever_catalog,
    output:
        claims="results/{run}/claims/telemetry.json",
    log:
        "results/{run}/steps/claim_from_telemetry.log",
    benchmark:
        "results/{run}/steps/claim_from_telemetry.tsv"
    conda:
        "../envs/perfproof.yaml"
    shell:
        "python -m perfproof.claims.analyze_telemetry --inventory {input.inventory} "
        "--telemetry {input.telemetry} --foms {input.foms} --levers {input.levers} "
        "--out {output.claims} 2>&1 | tee {log}"


rule verify:
    input:
        inventory="results/{run}/inventory.json",
        claims="results/{run}/claims/{source}.json",
    output:
        verified="results/{run}/verified/{source}.json",
    log:
        "results/{run}/steps/verify_{source}.log",
    benchmark:
        "results/{run}/steps/verify_{source}.tsv"
    wildcard_constraints:
        source="trace|telemetry",
    conda:
        "../envs/perfproof.yaml"
    shell:
        "python -m perfproof.claims.verify_{wildcards.source} --inventory {input.inventory} "
        "--claims {input.claims} --out {output.verified} 2>&1 | tee {log}"


# Only asked for with `analyst=command` or `analyst=openai`.
rule claim_by_author:
    input:
        prompt="agents/{source}_analyst.md",
        inventory="results/{run}/inventory.json",
        traces="results/{run}/tables/trace_summary.json",
        telemetry="results/{run}/telemetry_summary.json",
        foms="results/{run}/foms.json",
        levers=PLAN.lever_catalog,
    output:
        claims="results/{run}/claims/{source}_author.json",
        record="results/{run}/authors/{source}.json",
    log:
        "results/{run}/steps/claim_by_author_{source}.log",
    benchmark:
        "results/{run}/steps/claim_by_author_{source}.tsv"
    wildcard_constraints:
        source="trace|telemetry",
    conda:
        "../envs/perfproof.yaml"
    params:
        settings=AUTHORS.settings_json,
    shell:
        "python -m perfproof.claims.authors.author --source {wildcards.source} "
        "--settings {params.settings:q} --prompt {input.prompt} --inventory {input.inventory} "
        "--traces {input.traces} --foms {input.foms} --levers {input.levers} "
        "--out {output.claims} --record {output.record} 2>&1 | tee {log}"


use rule verify as verify_author with:
    input:
        inventory="results/{run}/inventory.json",
        claims="results/{run}/claims/{source}_author.json",
    output:
        verified="results/{run}/verified/{source}_author.json",
    log:
        "results/{run}/steps/verify_{source}_author.log",
    benchmark:
        "results/{run}/steps/verify_{source}_author.tsv"
