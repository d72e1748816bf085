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

    from reports import app_session, app_tables, app_view

    return app_session, app_tables, app_view, mo


@app.cell
def _(app_session, mo):
    given = app_session.Given.of(app_session.SERVED or mo.cli_args().to_dict(), mo.query_params().to_dict())
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
def _(app_session, held, mo, scenario):
    with mo.status.spinner(title=f"Compiling {scenario.selected_key}", subtitle="once for this scenario"):
        _found = app_session.opened(scenario.value)
    mo.stop(isinstance(_found, str), mo.vstack([scenario, mo.callout(mo.plain_text(str(_found)), kind="danger")]))
    preview = _found
    held.forget()
    return (preview,)


@app.cell
def _(given, mo, preview):
    year = mo.ui.dropdown(preview.years, value=given.year_of(preview), label="Year shown")
    start = mo.ui.dropdown(
        {"the first quarter": ""} | {p: p for p in preview.periods[1:]},
        value="the first quarter",
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
            mo.hstack([scenario, year, start], justify="start", gap=1.5, wrap=True),
            mo.hstack([presets, *actions], justify="start", align="center", gap=0.5, wrap=True),
            mo.accordion({"Choose other inputs for the sliders": chosen}),
        ],
        gap=0.5,
    )
    return


@app.cell
def _(app_session, held, mo, preview, sliders, start):
    case = preview.solve(sliders.value, start.value)
    held.take(preview, case)
    app_session.share(mo, preview, case)
    return (case,)


@app.cell
def _(app_view, case, mo, preview):
    mo.vstack([mo.Html(app_view.headline(preview, case)), mo.Html(app_view.chain(preview, case))], gap=0)
    return


@app.cell
def _(app_view, case, mo, pinned, preview):
    mo.Html(app_view.pictures(preview, case, pinned()))
    return


@app.cell
def _(app_session, app_tables, mo, preview):
    model = app_session.choice(mo, preview.costing.models(), "Tokens of", app_tables.model_title)
    task = app_session.choice(mo, preview.costing.tasks(), "Task", str.capitalize)
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
def _(mo):
    bands = mo.ui.run_button(label="Band of the headline")
    rank = mo.ui.run_button(label="Rank the inputs")
    report = mo.ui.run_button(label="Make the report of this case")
    mo.vstack(
        [
            mo.Html(
                '<div class="w2t"><h2>Longer questions</h2><p class="w2t-note">These solve many cases and take from '
                "seconds (small) to a minute or two (base); the sliders wait meanwhile.</p></div>"
            ),
            mo.hstack([bands, rank, report], justify="start", gap=0.5),
        ],
        gap=0.2,
    )
    return bands, rank, report


@app.cell
def _(app_view, bands, held, mo, preview):
    mo.stop(not bands.value)
    with mo.status.progress_bar(total=40, title="Drawing all uncertain inputs") as _bar:
        _band = preview.bands(held.case.settings, held.case.start, 40, lambda k, n: _bar.update())
    mo.Html(app_view.band_words(_band, preview))
    return


@app.cell
def _(app_tables, mo, preview, rank):
    mo.stop(not rank.value)
    with mo.status.spinner(title="Moving each input to both ends of its sources"):
        _rows = preview.swings()
    mo.Html(app_tables.ranking(preview, _rows))
    return


@app.cell
def _(app_session, held, mo, report):
    mo.stop(not report.value)
    with mo.status.spinner(title="Solving, pricing and writing the report") as _spinner:
        _page = app_session.report_page(held, lambda text: _spinner.update(subtitle=text))
    _name = f"{held.name()}_report.html"
    (
        mo.callout(mo.plain_text(_page), kind="danger")
        if isinstance(_page, str)
        else mo.download(_page, filename=_name, mimetype="text/html", label="Download the report (HTML)")
    )
    return


@app.cell
def _(app_view, mo, preview):
    mo.Html(app_view.footing(preview))
    return


if __name__ == "__main__":
    app.run()
