from perfproof.levers.chain import CHAIN, loop_of

LOOP = loop_of(PLAN, checkpoints)


wildcard_constraints:
    loop=r"[A-Za-z0-9_.-]+",
    chain=CHAIN,
    s=r"\d+",
    ending=r"[a-z]+(-[0-9.]+)?",


rule optimizer_loop:
    input:
        LOOP.target,
    localrule: True


rule loop_define:
    output:
        loop="results/{model}/loops/{loop}/loop.json",
    log:
        "results/{model}/loops/{loop}/log/define.log",
    wildcard_constraints:
        loop=r"(?!probe-)[A-Za-z0-9_.-]+",
    localrule: True
    conda:
        "../envs/perfproof.yaml"
    params:
        settings=LOOP.settings_json,
    shell:
        "python -m perfproof.levers.define --settings {params.settings:q} --out {output.loop} "
        "2>&1 | tee {log}"


# A step asks for one run; the DAG is evaluated again when it is there.
checkpoint loop_step:
    input:
        unpack(LOOP.step_inputs),
    output:
        step="results/{model}/loops/{loop}/{chain}/{s}.json",
    log:
        "results/{model}/loops/{loop}/log/{chain}/{s}.log",
    localrule: True
    conda:
        "../envs/perfproof.yaml"
    params:
        levers="config/levers/{model}.yaml",
        status="results/{model}/loops/{loop}/STATUS.txt",
    shell:
        "python -m perfproof.levers.advance --previous {input.previous} --chain {wildcards.chain} "
        "--step {wildcards.s} --levers {params.levers} --status {params.status} "
        "--out {output.step} 2>&1 | tee {log}"


rule loop_story:
    input:
        unpack(LOOP.report_inputs),
    output:
        decisions="results/{model}/loops/{loop}/{ending}/decisions.json",
        table="results/{model}/loops/{loop}/{ending}/foms.csv",
        banned="results/{model}/loops/{loop}/{ending}/do_not_retry.json",
        best="results/{model}/loops/{loop}/{ending}/best.yaml",
        story="results/{model}/loops/{loop}/{ending}/story.md",
        plot="results/{model}/loops/{loop}/{ending}/foms.png",
    log:
        "results/{model}/loops/{loop}/log/story-{ending}.log",
    localrule: True
    conda:
        "../envs/perfproof.yaml"
    params:
        confirm=LOOP.confirm_option,
        levers="config/levers/{model}.yaml",
        out_dir=subpath(output.story, parent=True),
    shell:
        "python -m perfproof.levers.story.write --loop {input.last} {params.confirm} "
        "--ending {wildcards.ending} --levers {params.levers} --out-dir {params.out_dir} "
        "2>&1 | tee {log}"


rule loop_replay:
    input:
        LOOP.replay_target,
    localrule: True


# The recorded loop is no input: its steps have a rule of their own, whose runs may not be here.
rule replay:
    output:
        replay="results/{model}/replays/{replay}/replay.json",
    log:
        "results/{model}/replays/{replay}/replay.log",
    localrule: True
    conda:
        "../envs/perfproof.yaml"
    params:
        loop=LOOP.replay_option("loop"),
        confirm=LOOP.replay_option("confirm"),
        decision=LOOP.replay_option("decision"),
        only=LOOP.replay_option("only"),
        levers="config/levers/{model}.yaml",
        out_dir=subpath(output.replay, parent=True),
    shell:
        "python -m perfproof.levers.replay --loop {params.loop} {params.confirm} "
        "--decision {params.decision:q} {params.only} --levers {params.levers} "
        "--out-dir {params.out_dir} 2>&1 | tee {log}"


# Only asked for by `perf_report` with `probe=True`.
checkpoint probe_choose:
    input:
        verified=collect(
            "results/{{run}}/verified/{source}.json", source=["trace", "telemetry"]
        ),
    output:
        choice="results/{run}/probe/choice.json",
    log:
        "results/{run}/steps/probe_choose.log",
    localrule: True
    conda:
        "../envs/perfproof.yaml"
    params:
        settings=LOOP.settings_json,
        run_dir=subpath(output.choice, ancestor=2),
    shell:
        "python -m perfproof.levers.probe --settings {params.settings:q} --run-dir {params.run_dir} "
        "--verified {input.verified} --out {output.choice} 2>&1 | tee {log}"


rule probe_define:
    input:
        choice=ancient(f"results/{PLAN.run}/probe/choice.json"),
    output:
        loop="results/{model}/loops/{loop}/loop.json",
    log:
        "results/{model}/loops/{loop}/log/define.log",
    wildcard_constraints:
        loop="probe-[0-9a-f]{8}",
    localrule: True
    conda:
        "../envs/perfproof.yaml"
    params:
        settings=LOOP.settings_json,
    shell:
        "python -m perfproof.levers.probe --settings {params.settings:q} --choice {input.choice} "
        "--out {output.loop} 2>&1 | tee {log}"
