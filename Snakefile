"""From a training recipe, or from what a run left, to a report whose every claim was checked."""

import sys

from snakemake.utils import min_version

min_version("9.21")


configfile: "config/config.yaml"


sys.path.insert(0, f"{workflow.basedir}/scripts")

from perfproof.core.dag import plan
from perfproof.core.layout import RECORDED_RUN, TRIAL_RUN

PLAN = plan(config, workflow.basedir, workflow.resource_settings.cores)

shell.prefix(PLAN.shell_prefix)


report: "report/workflow.rst"


wildcard_constraints:
    run=f"{TRIAL_RUN}|{RECORDED_RUN}",
    nodes=r"\d+",
    rep=r"\d+",


# Without launch rules no path through the DAG can start a run.
if PLAN.launches:

    include: "rules/training.smk"


include: "rules/artifacts.smk"
include: "rules/traces.smk"
include: "rules/foms.smk"
include: "rules/telemetry.smk"
include: "rules/claims.smk"
include: "rules/levers.smk"
include: "rules/report.smk"
include: "rules/cluster.smk"


rule perf_report:
    default_target: True
    input:
        f"results/{PLAN.run}/combined_report.html",
        f"results/{PLAN.run}/combined_report.md",
    localrule: True


workflow.localrules(*PLAN.local_rules(rule.name for rule in workflow.rules))


onerror:
    shell(PLAN.on_error)
