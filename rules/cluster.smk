from perfproof.cluster.before import before_submission, preflight_command


# Both print for a person and run whenever they are asked for: neither has an output.
# The preflight asks for exactly what a launch with these settings would ask for.
rule preflight:
    log:
        "results/cluster/preflight.log",
    localrule: True
    conda:
        "../envs/perfproof.yaml"
    params:
        command=lambda _: preflight_command(
            PLAN.settings, PLAN.root, workflow.executor_plugin.name
        ),
    shell:
        "{{ {params.command}; }} 2>&1 | tee {log}"


rule nodes:
    log:
        "results/cluster/nodes.log",
    localrule: True
    conda:
        "../envs/perfproof.yaml"
    shell:
        "python -m perfproof.cluster.nodes list 2>&1 | tee {log}"


# Never of a dry run, nor of the Snakemake that runs inside a job (it is called without hooks).
onstart:
    before_submission(workflow, PLAN.settings, PLAN.root)
