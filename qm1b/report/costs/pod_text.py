"""The price of a dataset on a Pod as tables, beside what was published."""

from pyscf_ipu.base.terminal import counted, text_table
from qm1b.report.costs.pod import PodPlan

PUBLISHED = (
    ("QM1B, 1.07 billion rows", "fewer than 40,000 IPU-hours: at least 7.4 conformers/s per IPU"),
    ("QM10X, 100 million rows", "3,000 IPU-hours: 9.3 conformers/s per IPU"),
    ("four IPUs", "100,000 conformers per hour: 6.9 conformers/s per IPU"),
)
"""What the authors of QM1B reported (A. Mathiasen et al., arXiv:2311.01135, and the notebooks and
talks of PySCF-IPU)."""


def as_text(plan: PodPlan) -> str:
    """The plan as tables, beside what was published."""
    rate, hours, days = plan.per_second, plan.ipu_hours, plan.days
    each = rate.low / plan.replicas, rate.high / plan.replicas
    rows = [("shape", "molecules", "million cycles", "ms")]
    for s in plan.shapes:
        cycles = f"{s.cycles.low / 1e6:,.2f} to {s.cycles.high / 1e6:,.2f}"
        ms = f"{1e3 * s.seconds.low:,.2f} to {1e3 * s.seconds.high:,.2f}"
        rows.append((s.label, f"{s.molecules:,}", cycles, ms))
    figures = [
        ("conformers/s", f"{rate.low:,.0f} to {rate.high:,.0f}"),
        ("conformers/s per IPU", f"{each[0]:,.1f} to {each[1]:,.1f}"),
        ("IPU-hours", f"{hours.low:,.3g} to {hours.high:,.3g}"),
        ("days", f"{days.low:,.3g} to {days.high:,.3g}"),
    ]
    if plan.host_per_second < float("inf"):
        figures.append(("the host can feed", f"{plan.host_per_second:,.0f} conformers/s"))
    notes = [f"{s.label} does not fit into the tiles' memory" for s in plan.shapes if not s.fits]
    notes += [f"{s.label}: not priced: {', '.join(s.unknown_ops)}" for s in plan.shapes
              if s.unknown_ops]  # fmt: skip
    if plan.host_bound:
        notes.append("the host cannot feed ideal code: its rate counts")
    return "\n".join(
        [
            f"{plan.rows:,.0f} rows on {plan.target}, {counted(plan.replicas, 'IPU')}, "
            "a conformer on each",
            "",
            *text_table(rows, "< > > >", gap="  "),
            "",
            *text_table(figures, "< <", gap="  "),
            *notes,
            "",
            "published",
            *text_table(PUBLISHED, "< <", gap="  ", indent="  "),
            "",
            "The smaller figures of cycles are those of ideal code, the larger of compiled code.",
        ]
    )
