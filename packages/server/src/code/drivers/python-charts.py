"""Reads what a matplotlib figure shows: the type of each chart, its axes, and its points. After python-results.py, whose names it shares."""

CHART = "application/vnd.svc.chart+json"
BOX_POINTS = 5
# A box, two whiskers, two caps, a median, and outliers where they are shown.
LINES_PER_BOX = (7, 6)


def chart_of(figure):
    charts = [chart_of_axes(axes) for axes in figure.axes]
    if len(charts) == 1:
        return charts[0]
    title = figure._suptitle.get_text() if getattr(figure, "_suptitle", None) is not None else None
    return {"type": "superchart" if charts else "unknown", "title": title, "elements": charts}


def chart_of_axes(axes):
    title = axes.get_title() or None
    for kind, read in CHART_KINDS:
        elements = read(axes)
        if elements:
            return dict(fields_of(axes, kind), type=kind, title=title, elements=elements)
    return {"type": "unknown", "title": title, "elements": []}


def fields_of(axes, kind):
    if kind == "pie":
        return {}
    fields = {}
    for name in ("x", "y"):
        axis = getattr(axes, name + "axis")
        label, unit = split_unit(axis.get_label_text())
        fields[name + "_label"] = label
        fields[name + "_unit"] = unit
        if kind in ("line", "scatter"):
            ticks = [float(tick) for tick in axis.get_ticklocs()]
            fields[name + "_ticks"] = [value_on(axis, tick) for tick in ticks] if is_time(axis) else ticks
            fields[name + "_tick_labels"] = [label.get_text() for label in axis.get_ticklabels()]
            fields[name + "_scale"] = scale_of(axis)
    return fields


def split_unit(text):
    """`Revenue ($)` is a label and a unit."""
    if text.endswith(")") and "(" in text:
        label, _, unit = text[:-1].rpartition("(")
        return label.strip() or None, unit.strip() or None
    return text or None, None


def converter_of(axis):
    get = getattr(axis, "get_converter", None)
    return type(get() if get is not None else axis.converter).__name__


def is_time(axis):
    return "Date" in converter_of(axis)


def scale_of(axis):
    if is_time(axis):
        return "datetime"
    return "categorical" if "Category" in converter_of(axis) else axis.get_scale()


def value_on(axis, number):
    """As the axis names it: a time, a category, or the number."""
    number = float(number)
    if number != number:
        return None
    scale = scale_of(axis)
    if scale == "datetime":
        from matplotlib.dates import num2date

        return num2date(number).isoformat()
    if scale == "categorical":
        return category_at(axis, number)
    return cell_of(number)


def category_at(axis, place):
    """What stands at this place of the axis, or the place itself."""
    named = zip(axis.get_ticklocs(), axis.get_ticklabels())
    for tick, label in named:
        if abs(tick - place) < 1e-6 and label.get_text():
            return label.get_text()
    return "%g" % place


def label_of(artist, place):
    label = str(artist.get_label())
    return label if label and not label.startswith("_") else "Element %d" % place


def points_of(axes, pairs):
    return [[value_on(axes.xaxis, x), value_on(axes.yaxis, y)] for x, y in pairs]


def read_pie(axes):
    wedges = [patch for patch in axes.patches if type(patch).__name__ == "Wedge"]
    return [
        {
            "label": label_of(wedge, place),
            "angle": float(abs(wedge.theta2 - wedge.theta1)),
            "radius": float(wedge.r),
        }
        for place, wedge in enumerate(wedges)
    ]


def read_bars(axes):
    elements = []
    bars = [one for one in axes.containers if type(one).__name__ == "BarContainer"]
    for place, container in enumerate(bars):
        is_flat = getattr(container, "orientation", "vertical") == "horizontal"
        for patch in container.patches:
            if is_flat:
                label = category_at(axes.yaxis, patch.get_y() + patch.get_height() / 2)
                value = patch.get_width()
            else:
                label = category_at(axes.xaxis, patch.get_x() + patch.get_width() / 2)
                value = patch.get_height()
            elements.append({"label": label, "group": label_of(container, place), "value": cell_of(float(value))})
    return elements


def read_boxes(axes):
    lines = list(axes.lines)
    starts = [place for place, line in enumerate(lines) if is_box(line)]
    for size in LINES_PER_BOX:
        if starts and starts == list(range(0, len(lines), size)) and len(lines) == size * len(starts):
            return [box_of(axes, lines[start : start + size]) for start in starts]
    return []


def is_box(line):
    xs, ys = line.get_data()
    return len(xs) == BOX_POINTS and xs[0] == xs[-1] and ys[0] == ys[-1]


def box_of(axes, lines):
    box, _, _, low, high, median = lines[:6]
    quartiles = sorted(float(y) for y in box.get_ydata())
    ends = sorted((float(low.get_ydata()[0]), float(high.get_ydata()[0])))
    middle = (min(box.get_xdata()) + max(box.get_xdata())) / 2
    return {
        "label": category_at(axes.xaxis, middle),
        "min": ends[0],
        "first_quartile": quartiles[0],
        "median": float(median.get_ydata()[0]),
        "third_quartile": quartiles[-1],
        "max": ends[1],
        "outliers": [float(y) for line in lines[6:] for y in line.get_ydata()],
    }


def read_scatter(axes):
    groups = [one for one in axes.collections if type(one).__name__ == "PathCollection"]
    return [
        {"label": label_of(group, place), "points": points_of(axes, group.get_offsets())}
        for place, group in enumerate(groups)
    ]


def read_lines(axes):
    return [
        {"label": label_of(line, place), "points": points_of(axes, zip(*line.get_data(orig=False)))}
        for place, line in enumerate(axes.lines)
    ]


# The first that finds something says what the chart is.
CHART_KINDS = (
    ("pie", read_pie),
    ("bar", read_bars),
    ("box_and_whisker", read_boxes),
    ("scatter", read_scatter),
    ("line", read_lines),
)
