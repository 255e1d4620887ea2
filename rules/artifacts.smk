rule inventory:
    input:
        PLAN.evidence,
    output:
        inventory="results/{run}/inventory.json",
        source="results/{run}/source.txt",
    log:
        "results/{run}/steps/inventory.log",
    benchmark:
        "results/{run}/steps/inventory.tsv"
    conda:
        "../envs/perfproof.yaml"
    params:
        root=PLAN.evidence_root,
        state=PLAN.evidence_state,
    shell:
        "{{ printf '%s\\n' {params.root:q} > {output.source}; "
        "python -m perfproof.artifacts.inventory --root {params.root:q} "
        "--run-id {wildcards.run:q} --out {output.inventory}; }} 2>&1 | tee {log}"
