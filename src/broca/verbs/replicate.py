"""`replicate`: repeats a claim on fresh items, under other ablations and in other words."""

from dataclasses import replace

from broca.engine import Ablation
from broca.engine.ablation import ablations_of
from broca.errors import BadInput, NothingToLocalize
from broca.options import ReplicateOptions, TaskOptions, verb
from broca.results.claim import CLAIMED, Claim, Replica, Replication
from broca.results.verification import AblationCheck
from broca.runs.folder import with_recorded
from broca.runs.run import Run, model_info
from broca.runs.session import named_heads, open_run
from broca.verbs.verify import LOCATED
from broca.verification import Scope, Trial, fitting
from broca.verification.examiner import FEW

WORDING = 7
"""The rows of a repetition on fresh items are those of this many repetitions in other words."""

SHARED = "the seeds draw from the same fresh items, so that their repetitions may share some"
"""Note on repetitions with several seeds."""

HALF = 0.5
"""Minimum drop of a repetition, as a share of the claimed drop."""


@verb(ReplicateOptions)
def replicate(options: ReplicateOptions) -> Replication:
    """Repeats a claim on fresh items with other seeds, under zero and mean, and in other words.

    Raises:
        BrocaError: Bad input, in one line that says what to do, such as weights or a task that are
            not those of the claim.
    """
    claim = options.claim if isinstance(options.claim, Claim) else Claim.read(options.claim)
    run_options = options.run_options
    run_options = replace(
        run_options,
        task_options=with_recorded(run_options.task_options, TaskOptions.of(claim.task_options)),
        model_options=replace(run_options.model_options, components=claim.components),
    )
    given = () if options.wordings == "auto" else options.wordings
    with open_run(
        options.model or claim.model.name, run_options, task=claim.task,
        others=[claim.others, claim.same_skill, given],
    ) as opened:  # fmt: skip
        weights, advice = claim.model.fingerprint, "name the claim's in `model`"
        opened.model.require_measured(weights, of="the claim", advice=advice)
        own = claim.wordings if options.wordings == "auto" else given
        wordings = tuple(dict.fromkeys(opened.catalog.names_of(own)))
        if claim.task in wordings:
            raise BadInput(f"task '{claim.task}' in `wordings` is the claim's: name other words")
        repetition = _Repetition(
            claim, opened, named_heads(opened.model, claim.heads),
            WORDING * options.rows // (WORDING * options.seeds + len(wordings)),
        )  # fmt: skip
        replicas: list[Replica] = []
        notes = dict.fromkeys([SHARED] * (options.seeds > 1))
        rows = 0
        seeds = [claim.seed + number for number in range(1, options.seeds + 1)]
        each = [*((claim.task, seed) for seed in seeds), *((task, seeds[0]) for task in wordings)]
        for run in [repetition.begun(task, seed) for task, seed in each]:
            notes |= dict.fromkeys(run.tasks.notes)
            replicas += repetition.replicas(run)
            rows += run.scoring_rows
            run.finish()
        return Replication(
            claim=claim, model=model_info(opened.model), replicas=tuple(replicas),
            rows=rows, notes=tuple(notes),
        )  # fmt: skip


class _Repetition:
    """What all repetitions of a claim share.

    Args:
        claim: The claim.
        opened: The open model.
        heads: The set.
        rows: Maximum number of rows of each repetition on fresh items.
    """

    def __init__(self, claim: Claim, opened: Run, heads: tuple[str, ...], rows: int) -> None:
        self.claim, self.opened, self.heads, self.rows = claim, opened, heads, rows
        kinds = [kind for kind in ablations_of(opened.model) if kind in ("zero", "mean")]
        self.kinds = [kind for kind in kinds if kind != claim.ablation.kind]

    def fitting(self, trial: Trial, seed: int) -> tuple[Scope, int]:
        """Returns what is measured on fresh items, and the largest number of rows of that."""
        members, kinds = len(self.heads), len(self.kinds)
        return fitting(trial, Scope(seed=seed), self.rows, members=members, kinds=kinds)

    def begun(self, task: str, seed: int) -> Run:
        """Returns the run of a repetition, with its items.

        Raises:
            BadInput: The task is not that of the claim, has no fresh items, or too few rows.
        """
        claim = self.claim
        seen = [
            replace(line, task=task, member=task) if line.task == claim.task != task else line
            for line in claim.documents
        ]
        tasks = self.opened.claimed(
            task, others=list(claim.others), same_skill=list(claim.same_skill), items=LOCATED,
            seed=seed, searched="task", report_items=max(8, self.rows // 30), seen=seen,
        )  # fmt: skip
        fresh = task == claim.task
        rows = self.rows if fresh else self.rows // WORDING

        def needed(trial: Trial) -> int:
            drops = sum(map(len, trial.places.values())) + trial.judged_items(trial.places)
            return self.fitting(trial, seed)[1] if fresh else drops

        tasks = tasks.within(rows, needed)
        settings = {
            "verb": "replicate", "task": task, "heads": list(self.heads), "seed": seed,
            "others": [*tasks.same_skill, *tasks.others],
            "ablation": [claim.ablation.kind, claim.ablation.scale],
        }  # fmt: skip
        ablation = Ablation(claim.ablation.kind, claim.ablation.scale, seed)
        run = self.opened.on(tasks, settings=settings, ablation=ablation, donors=tasks.located)
        if fresh and not claim.digests.items() <= run.digests.items():
            raise BadInput(
                f"the definition or data of task '{task}', or the tokenizer, are not the claim's"
            )
        return run

    def replicas(self, run: Run) -> list[Replica]:
        """Measures one repetition: a verification, or in other words the drops alone."""
        claim, tasks, kind, seed = self.claim, run.tasks, run.ablation.kind, run.ablation.seed
        task = tasks.task
        fresh = task == claim.task
        own = Replica(
            "fresh items" if fresh else "other words", task, kind, seed,
            items=len(tasks.places["report"][task]), why="the intact model cannot do it",
        )  # fmt: skip
        try:
            scores, _ = run.intact()
        except NothingToLocalize:
            return [own]
        scope, _ = self.fitting(tasks.trial(), seed)
        if not fresh:
            examiner = run.examiner(scope, kinds=[kind])
            judging = replace(examiner, trial=examiner.trial.judged(scores))
            return [self._checked(own, judging.check(kind, self.heads, examiner.trial.places))]
        examiner = run.examiner(scope, kinds=self.kinds)
        found = examiner.examine(self.heads, report=run.stages.enter)
        (drop,), label = found.roles("task"), found.verdict.label if found.verdict else ""
        small = self._small(drop.drop)
        undecided = label == "inconclusive" and not small
        weaker = label not in CLAIMED[: CLAIMED.index(claim.verdict.label) + 1]
        first = replace(
            own, drop=drop.interval, specific=found.specific, verdict=label,
            held=None if undecided else not (small or weaker),
            why=small or f"the verdict is {label}" * weaker + ": give more rows" * undecided,
        )  # fmt: skip
        few = tasks.trial().smaller(FEW)[task]
        other = replace(own, respect="other ablation", items=len(few))
        return [first, *(self._checked(other, check) for check in found.ablations)]

    def _checked(self, blank: Replica, check: AblationCheck) -> Replica:
        """Returns what drops alone say of the claim."""
        why = self._small(check.drop.value)
        if check.drop.low <= 0:
            why = "the drop may be zero"
        elif check.specific is not None and check.specific.low <= 0:
            why = "the others may lose as much"
        held = None if check.specific is None and not why else not why
        return replace(
            blank, ablation=check.kind, drop=check.drop, specific=check.specific, held=held,
            why="the intact model is shown to do no other task" if held is None else why,
        )  # fmt: skip

    def _small(self, drop: float) -> str:
        """Returns that a drop is small beside the claimed one; empty if it is not."""
        half = drop >= HALF * self.claim.drop.value
        return "" if half else "the drop is less than half of the claimed one"
