"""What a page says: its tables as lists of texts, its paragraphs, and its plots as numbers, read from the drawing by its own axes."""
import math, re
import xml.etree.ElementTree as ElementTree
from html import unescape
from html.parser import HTMLParser

NEAR = 0.03  # units of the drawing, which has two decimals: about 0.015% of an axis
BAR = 0.8    # of the room of a category


class _Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tables, self.paragraphs, self.text = [], [], None

    def handle_starttag(self, tag, attributes):
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th", "p"):
            self.text = ""

    def handle_data(self, data):
        if self.text is not None:
            self.text += data

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.tables[-1][-1].append(self.text)
        elif tag == "p":
            self.paragraphs.append(self.text)
        if tag in ("td", "th", "p"):
            self.text = None


def _pairs(text):
    return [(float(x), float(y)) for x, y in re.findall(r"(-?[\d.]+),(-?[\d.]+)", text)]


def _number(label):
    """ 0.5, 50k, 10^{-3} """
    label = label.strip()
    scale = {"k": 1e3, "M": 1e6, "G": 1e9, "m": 1e-3}.get(label[-1:], None)
    return float(label[:-1]) * scale if scale else float(label)


class Figure:
    """One drawing. legend: series -> colour; a level (a target) is not among them."""

    def __init__(self, caption, legend, svg):
        self.caption, self.legend = caption, legend
        self.x_tics, self.y_tics, self.labels = [], [], []  # (position, label)
        self.levels, self.errors = [], []  # points of lines across, and of error bars
        self.lines, self.bands, self.points, self.boxes = {}, {}, {}, {}  # by colour
        self._read(ElementTree.fromstring(svg))

    def _read(self, root):
        self._read_tics(list(root))
        for path in root.iter("path"):
            if path.get("transform"): # a mark; an open one has its colour around it
                colour = path.get("stroke") if path.get("fill") == "var(--paper)" else path.get("fill")
                self.points.setdefault(colour, []).extend(_pairs(path.get("transform")))
            elif path.get("stroke") not in (None, "currentColor", "var(--grid)"):
                self.lines.setdefault(path.get("stroke"), []).extend(_pairs(path.get("d")))
        self._read_ink_lines(root)
        for polygon in root.iter("polygon"):
            if "url(" not in polygon.get("fill"): # a hatch
                into = self.bands if polygon.get("fill-opacity") else self.boxes
                into.setdefault(polygon.get("fill"), []).append(_pairs(polygon.get("points")))
        self.labels = ["".join(text.itertext()) for text in root.iter("text")]

    def _read_ink_lines(self, root):
        """A series in the colour of the page's text is told from the axes by its width, and so are error bars and levels."""
        for path in root.iter("path"):
            if path.get("stroke") == "currentColor" and not path.get("transform"):
                if path.get("stroke-width") == "2":
                    self.lines.setdefault("currentColor", []).extend(_pairs(path.get("d")))
                elif path.get("stroke-width") == "1.5":
                    into = self.levels if path.get("stroke-dasharray") else self.errors
                    into.extend(_pairs(path.get("d")))

    def _read_tics(self, parts):
        """A short path, and its label after it."""
        for path, label in zip(parts, parts[1:]):
            if path.tag != "path" or label.tag != "text":
                continue
            (x, y), (to_x, to_y) = _pairs(path.get("d"))[:2]
            if abs(x - to_x) + abs(y - to_y) < 10: # no axis
                (self.y_tics if y == to_y else self.x_tics).append((y if y == to_y else x, "".join(label.itertext())))

    def is_log(self):
        """y; the labels of x are those below."""
        return any("(log scale)" in label for label in self.labels if not self._is_of_x(label))

    @staticmethod
    def _is_of_x(label):
        return label.startswith(("learning rate", "loss to be reached", "times that of"))

    def colour(self, name):
        return self.legend[name] if self.legend else next(iter({**self.lines, **self.boxes, **self.points}))

    @staticmethod
    def _scale(tics, to):
        """The position of a value, by the first and the last tic; all others must lie on the line between them."""
        (a, first), (b, last) = (tics[0][0], to(tics[0][1])), (tics[-1][0], to(tics[-1][1]))
        place = lambda value: a + (value - first) * (b - a) / (last - first)
        for position, text in tics:
            if abs(place(to(text)) - position) > NEAR:
                raise ValueError(f"tic {text} is at {position}, not at {place(to(text))}")
        return place

    def place_y(self):
        if not self.is_log():
            return self._scale(self.y_tics, _number)
        place = self._scale(self.y_tics, lambda text: math.log10(float(text)))
        return lambda value: place(math.log10(value))

    def place_x(self):
        if not any("(log scale)" in label for label in self.labels if self._is_of_x(label)):
            return self._scale(self.x_tics, _number)
        place = self._scale(self.x_tics, lambda text: math.log10(float(text)))
        return lambda value: place(math.log10(value))

    def place_row(self, categories):
        if len(categories) == 1:
            return lambda row: self.y_tics[0][0]
        return self._scale(self.y_tics, lambda text: categories.index(text))

    def place_category(self, categories):
        return self._scale(self.x_tics, lambda text: categories.index(text))


class Page:
    def __init__(self, path):
        text = open(path, encoding="utf-8").read()
        reader = _Page()
        reader.feed(text)
        self.paragraphs, self.text = reader.paragraphs, text
        self.links = re.findall(r'<a href="([^"]*)"', text)
        self.tables = reader.tables
        self.figures = {}
        for figure in re.findall(r"<figure>(.*?)</figure>", text, re.S):
            caption = unescape(re.search(r"<figcaption>(.*?)</figcaption>", figure).group(1))
            legend = {unescape(name): re.search(r'(?:stroke|fill)="(#\w+|currentColor)"', look).group(1)
                      for look, name in re.findall(r"<span>(.*?)</svg>(.*?)</span>", figure, re.S)}
            self.figures[caption] = Figure(caption, legend, re.search(r'<svg viewBox="0 0 520 300".*?</svg>', figure, re.S).group(0))

    def table(self, *headings):
        """The one whose first headings are these; [heading, row, ...]"""
        for table in self.tables:
            if tuple(table[0][:len(headings)]) == headings:
                return table
        raise KeyError(f"no table has the headings {headings}; there are {[t[0] for t in self.tables]}")
