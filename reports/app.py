# /// script
# [tool.marimo.display]
# theme = "system"
# ///
"""The interactive app: choose a scenario, move its limits, see what binds and what it costs (`wafer2token view`).

A marimo notebook: a cell runs again when what it reads changes. It computes nothing itself; `reports.app_model` does.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"
import marimo

app = marimo.App(width="full", app_title="wafer2token")


@app.cell
def _():
    import marimo as mo

    from reports import app_link, app_questions, app_session, app_tables, app_view

    return app_link, app_questions, app_session, app_tables, app_view, mo


@app.cell
def _(app_link, app_session, mo):
    given = app_link.Given.of(app_link.SERVED or mo.cli_args().to_dict(), mo.query_params().to_dict())
    pinned, set_pinned = mo.state(None)
    started, set_started = mo.state(given.settings)
    held = app_session.Held()
    return given, held, pinned, set_pinned, set_started, started


@app.cell
def _(app_view, given, mo):
    scenario = mo.ui.dropdown(given.choices, value=given.choice, label="Scenario")
    mo.Html(app_view.STYLE)
    return (scenario,)


@app.cell
def _(app_session, given, held, mo, scenario, set_pinned):
    with mo.status.spinner(
        title=f"Compiling {app_session.literal(scenario.selected_key)}", subtitle="once for this scenario"
    ):
        _found = app_session.opened(scenario.value)
    mo.stop(isinstance(_found, str), mo.vstack([scenario, mo.callout(mo.plain_text(str(_found)), kind="danger")]))
    preview = _found
    set_pinned(held.begin(preview, given))
    return (preview,)


@app.cell
def _(given, mo, preview):
    year = mo.ui.dropdown(preview.years, value=given.year_of(preview), label="Year shown")
    _first = "the first quarter"
    start = mo.ui.dropdown(
        {_first: ""} | {p: p for p in preview.periods[1:]},
        value=given.start if given.start in preview.periods[1:] else _first,
        label="Changes hold from",
    )
    return start, year


@app.cell
def _(mo, preview):
    from reports.app_controls import MOST, addresses

    _options = addresses(preview.resolved)
    _names = {address: title for title, address in _options.items()}
    chosen = mo.ui.multiselect(
        _options,
        value=[_names[c.address] for c in preview.controls.values()],
        max_selections=MOST,
        label="Inputs under sliders (at most eight; type to search all)",
        full_width=True,
    )
    return (chosen,)


@app.cell
def _(chosen, preview, year):
    preview.focus(year.value)
    controls = preview.choose(chosen.value)
    return (controls,)


@app.cell
def _(app_session, controls, held, mo, preview, started):
    sliders = mo.ui.dictionary(app_session.sliders(mo, controls, held.values(started()), patient=preview.large))
    app_session.spoken(sliders, controls)
    return (sliders,)


@app.cell
def _(app_session, controls, held, mo, set_started):
    # not in the cell of the sliders: a cell that reads a state is not run again by a setter of its own
    resets = app_session.resets(mo, controls, held, set_started)
    presets = app_session.presets(mo, controls, set_started)
    return presets, resets


@app.cell
def _(app_view, controls, mo, preview, resets, sliders):
    mo.sidebar(
        [
            mo.Html('<div class="w2t"><p class="w2t-title">wafer2token</p></div>'),
            mo.vstack(
                [
                    mo.vstack(
                        [
                            mo.hstack([sliders[k], resets[k]], widths=[1, 0], align="end", gap=0.25),
                            mo.Html(app_view.track(c, preview.year)),
                        ],
                        gap=0,
                    )
                    for k, c in controls.items()
                ],
                gap=0.2,
            ),
        ],
        width="26rem",
    )
    return


@app.cell
def _(app_session, held, mo, set_pinned, set_started):
    actions = app_session.buttons(mo, held, set_pinned, set_started)  # a global name, or the buttons are forgotten
    return (actions,)


@app.cell
def _(actions, app_view, chosen, mo, preview, presets, scenario, start, year):
    mo.vstack(
        [
            mo.Html(f'<div class="w2t"><p class="w2t-title">{app_view.title(preview)}</p></div>'),
            mo.hstack([scenario, year, start, presets], justify="start", gap=1, wrap=True),
            mo.hstack(actions, justify="start", align="center", gap=0.5, wrap=True),
            mo.accordion({"Choose other inputs for the sliders": chosen}),
        ],
        gap=0.5,
    )
    return


@app.cell
def _(app_session, held, mo, preview, sliders, start):
    case = preview.solve(sliders.value, start.value)
    held.take(preview, case)
    return (case,)


@app.cell
def _(app_link, app_session, case, mo, model, pinned, preview, task):
    app_link.share(mo, preview, case, pinned(), app_session.other_than_first(preview, model.value, task.value))
    return


@app.cell
def _(app_view, case, mo, preview):
    mo.vstack([mo.Html(app_view.headline(preview, case)), mo.Html(app_view.chain(preview, case))], gap=0)
    return


@app.cell
def _(app_view, case, mo, pinned, preview):
    mo.Html(app_view.pictures(preview, case, pinned()))
    return


@app.cell
def _(app_session, app_tables, given, held, mo, preview):
    _link = given if held.opened == 1 else None  # another scenario was chosen: what the link holds is not of it
    model = app_session.choice(
        mo, preview.costing.models(), "Tokens of", app_tables.model_title, _link.model if _link else ""
    )
    task = app_session.choice(mo, preview.costing.tasks(), "Task", str.capitalize, _link.task if _link else "")
    return model, task


@app.cell
def _(app_tables, case, mo, model, pinned, preview, task):
    _cases = [("base", preview.base), *([("pinned", pinned())] if pinned() else []), ("current", case)]
    mo.vstack(
        [
            mo.Html(app_tables.comparison(preview, _cases, model.value, task.value)),
            mo.Html(app_tables.costs(preview, case, model.value, task.value)),
            mo.hstack([model, task], justify="start", gap=1.5),
        ],
        gap=0.4,
    )
    return


@app.cell
def _(app_questions, controls, mo, model, preview, task):
    # asked the other way round: an amount or a target is typed, not found by moving a slider
    aims = app_questions.measures(preview, model.value, task.value)
    which = mo.ui.dropdown(
        {c.title: k for k, c in controls.items()}, value=next(iter(controls.values())).title, label="Input"
    )
    aim = mo.ui.dropdown(list(aims), value=next(iter(aims)), label="Figure", full_width=True)
    return aim, aims, which


@app.cell
def _(aim, aims, app_session, controls, mo, preview, which):
    asked = controls[which.value]
    amount, target = app_session.question_boxes(mo, preview, asked, aims[aim.value])
    get, need = mo.ui.run_button(label="What do I get?"), mo.ui.run_button(label="What do I need?")
    mo.vstack(
        [
            mo.Html('<div class="w2t"><h2>Ask for an amount or a target</h2></div>'),
            mo.hstack([which, amount, get], justify="start", align="end", gap=0.75, wrap=True),
            mo.hstack([aim, target, need], justify="start", align="end", gap=0.75, wrap=True),
        ],
        gap=0.4,
    )
    return amount, asked, get, need, target


@app.cell
def _(amount, app_questions, asked, get, held, mo, preview):
    mo.stop(not get.value)
    mo.Html(app_questions.get_words(preview, asked, amount.value, held.now(), held.case.start))
    return


@app.cell
def _(aim, aims, app_session, asked, held, mo, need, preview, target):
    mo.stop(not need.value)
    app_session.ask_need(mo, held, preview, asked, aims[aim.value], target.value)
    return


@app.cell
def _(held, mo):
    bands = mo.ui.run_button(label="Band of the headline")
    rank = mo.ui.run_button(label="Rank the inputs")
    report = mo.ui.run_button(label="Make the report of this case")
    cancel = mo.ui.button(label="Cancel", on_change=lambda _: held.job.cancel())
    mo.vstack(
        [
            mo.Html(
                '<div class="w2t"><h2>Longer questions</h2><p class="w2t-note">These solve many cases and take from '
                "seconds (small) to a minute or two (base). The sliders work meanwhile; Cancel ends it.</p></div>"
            ),
            mo.hstack([bands, rank, report, cancel], justify="start", gap=0.5, wrap=True),
        ],
        gap=0.2,
    )
    return bands, cancel, rank, report


@app.cell
def _(app_session, bands, held, mo, preview):
    mo.stop(not bands.value)
    app_session.ask_band(mo, held, preview)
    return


@app.cell
def _(app_session, held, mo, preview, rank):
    mo.stop(not rank.value)
    app_session.ask_ranking(mo, held, preview)
    return


@app.cell
def _(app_session, held, mo, report):
    mo.stop(not report.value)
    app_session.ask_report(mo, held)
    return


@app.cell
def _(app_view, mo, preview):
    mo.Html(app_view.footing(preview))
    return


if __name__ == "__main__":
    app.run()
