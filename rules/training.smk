# No inputs: a copied tree has new times and must launch nothing. What a trial means today is its
# digest; when that changes, the recorded measurement is of something else and is made again.
# The run directory is not an output: a failing rule loses its outputs, and a failed run's log and
# manifest are what explains it.
rule launch:
    output:
        record="results/{model}/trials/{trial}/nodes-{nodes}/rep-{rep}/record.json",
    log:
        "results/{model}/trials/{trial}/nodes-{nodes}/rep-{rep}/steps/launch.log",
    benchmark:
        "results/{model}/trials/{trial}/nodes-{nodes}/rep-{rep}/steps/launch.tsv"
    conda:
        "../envs/perfproof.yaml"
    threads: PLAN.launch_threads
    resources:
        mpi=PLAN.launch_resource("mpi"),
        nodes=PLAN.launch_resource("nodes"),
        tasks=PLAN.launch_resource("tasks"),
        cpus_per_task=PLAN.launch_resource("cpus_per_task"),
        mem_mb=PLAN.launch_resource("mem_mb"),
        runtime=PLAN.launch_resource("runtime"),
        slurm_partition=PLAN.launch_resource("slurm_partition"),
        slurm_account=PLAN.launch_resource("slurm_account"),
        constraint=PLAN.launch_resource("constraint"),
        slurm_extra=PLAN.launch_resource("slurm_extra"),
    params:
        run_id="{model}/trials/{trial}/nodes-{nodes}/rep-{rep}",
        run_dir=subpath(output.record, parent=True),
        recipe="results/{model}/trials/{trial}/nodes-{nodes}/rep-{rep}/steps/recipe.json",
        cluster=PLAN.settings.cluster,
        workload=PLAN.settings.workload,
        digest=PLAN.recipe_digest,
    shell:
        "{{ python -m perfproof.training.resolve --model {wildcards.model} "
        "--trial {wildcards.trial} --nodes {wildcards.nodes} --cluster {params.cluster} "
        "--workload {params.workload} --out {params.recipe} && "
        "python -m perfproof.cluster.settle --run-dir {params.run_dir} && "
        "{{ code=0; python -m perfproof.training.launch --recipe {params.recipe} "
        "--run-dir {params.run_dir} --run-id {params.run_id} --record {output.record} || code=$?; "
        "python -m perfproof.cluster.settle --run-dir {params.run_dir} --launch-exit $code; }}; "
        "}} 2>&1 | tee {log}"
