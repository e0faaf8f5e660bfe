"""Pictures of terminals: runs a program on a pseudo-terminal, interprets its output and draws the screen as SVG."""
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from html import escape

CELL_WIDTH, LINE_HEIGHT, FONT_SIZE = 8.4, 19, 14
MARGIN, BAR_HEIGHT = 18, 36
FONT = "ui-monospace, SFMono-Regular, 'Cascadia Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace"
BACKGROUND, FOREGROUND, QUIET, EDGE = "#0d1117", "#d1d7e0", "#9198a1", "#3d444d"
# For codes 30 to 37 and 90 to 97.
COLORS = ("#656c76", "#ff7b72", "#3fb950", "#e3b341", "#58a6ff", "#bc8cff", "#39c5cf", "#f0f6fc",
          "#8b949e", "#ffa198", "#56d364", "#f2cc60", "#79c0ff", "#d2a8ff", "#56d4dd", "#ffffff")


def run_on_terminal(command, n_columns, environment=None, folder=None):
    """The output of a program on a terminal that is `n_columns` wide. Raises when the program fails."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, n_columns, 0, 0))
    variables = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, cwd=folder, start_new_session=True,
                               env={**variables, "TERM": "xterm-256color", **(environment or {})})
    os.close(slave)
    output = b""
    while True:
        try:
            chunk = os.read(master, 1 << 16)
        except OSError:  # Linux reports a closed slave end this way
            break
        if not chunk:
            break
        output += chunk
    os.close(master)
    text = output.decode(errors="replace")
    if process.wait() != 0:
        raise subprocess.CalledProcessError(process.returncode, command, text)
    return text


class Style:
    """Colour (None: the default) and weight of a cell."""

    def __init__(self, color=None, is_bold=False, is_dim=False):
        self.color, self.is_bold, self.is_dim = color, is_bold, is_dim

    def __eq__(self, other):
        return (self.color, self.is_bold, self.is_dim) == (other.color, other.is_bold, other.is_dim)

    def changed_by(self, codes):
        """The style after "\\033[CODES m"; ignores codes that are not drawn (backgrounds, underlines)."""
        style = Style(self.color, self.is_bold, self.is_dim)
        for code in codes or [0]:
            if code == 0:
                style = Style()
            elif code in (1, 2):
                style.is_bold, style.is_dim = code == 1, code == 2
            elif code == 22:
                style.is_bold = style.is_dim = False
            elif 30 <= code <= 37 or 90 <= code <= 97:
                style.color = COLORS[code - 30 if code < 40 else code - 82]
            elif code == 39:
                style.color = None
        return style


class Screen:
    """All lines written to a terminal: nothing scrolls away. Each is a list of (letter, style)."""
    PIECE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|\x1b[()].|\x1b.|[\s\S]")

    def __init__(self, text, n_columns):
        self.n_columns = n_columns
        self.lines = [[]]
        self.row = self.column = 0
        self.style = Style()
        for piece in self.PIECE.finditer(text):
            if piece[2]:
                self.control(piece[2], [int(code) for code in re.findall(r"\d+", piece[1])])
            elif not piece[0].startswith("\x1b"):
                self.put(piece[0])
        while self.lines and not any(letter.strip() for letter, _ in self.lines[-1]):
            self.lines.pop()

    def control(self, what, codes):
        count = max(codes[0], 1) if codes else 1
        if what == "m":
            self.style = self.style.changed_by(codes)
        elif what == "K":  # 0: to the end of the line, 1: to its beginning, 2: all of it
            kind = codes[0] if codes else 0
            line = self.lines[self.row]
            if kind == 0:
                del line[self.column:]
            else:
                end = len(line) if kind == 2 else min(self.column + 1, len(line))
                line[:end] = [(" ", Style())] * end
        elif what == "A":
            self.row = max(self.row - count, 0)
        elif what == "C":
            self.column = min(self.column + count, self.n_columns - 1)
        elif what == "G":
            self.column = count - 1

    def put(self, letter):
        if letter == "\n":
            self.next_row()
        elif letter == "\r":
            self.column = 0
        elif letter == "\b":
            self.column = max(self.column - 1, 0)
        elif letter == "\t":
            self.column = min(self.column // 8 * 8 + 8, self.n_columns - 1)
        elif letter >= " ":
            if self.column == self.n_columns:
                self.next_row()
                self.column = 0
            line = self.lines[self.row]
            line += [(" ", Style())] * (self.column + 1 - len(line))
            line[self.column] = (letter, self.style)
            self.column += 1

    def next_row(self):
        self.row += 1
        if self.row == len(self.lines):
            self.lines.append([])

    def text(self):
        return "\n".join("".join(letter for letter, _ in line).rstrip() for line in self.lines)


def runs(line):
    """Words of one style as (column, text, style). Two spaces end a run: renderers may join them."""
    found = []
    for column, (letter, style) in enumerate(line):
        if found and found[-1][2] == style:
            found[-1] = (found[-1][0], found[-1][1] + letter, style)
        else:
            found.append((column, letter, style))
    return [(column + words.start(), words[0], style) for column, text, style in found
            for words in re.finditer(r"\S+(?: \S+)*", text)]


def drawn_run(column, text, style, y):
    """States its width, so that columns stay aligned in any font."""
    x = MARGIN + column * CELL_WIDTH
    color = f' fill="{style.color}"' if style.color else f' fill="{QUIET}"' if style.is_dim else ""
    weight = ' font-weight="bold"' if style.is_bold else ""
    width = f' textLength="{len(text) * CELL_WIDTH:.1f}" lengthAdjust="spacingAndGlyphs"'
    return f'<text x="{x:.1f}" y="{y:g}"{width}{color}{weight}>{escape(text)}</text>'


def draw(screen, title, description):
    """The screen in a titled window, as an SVG file. Dark on light pages too."""
    width = round(2 * MARGIN + screen.n_columns * CELL_WIDTH)
    height = BAR_HEIGHT + 2 * MARGIN + len(screen.lines) * LINE_HEIGHT - 6
    parts = [f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="10" fill="{BACKGROUND}" '
             f'stroke="{EDGE}"/>',
             f'<line x1="0" y1="{BAR_HEIGHT}" x2="{width}" y2="{BAR_HEIGHT}" stroke="{EDGE}"/>']
    parts += [f'<circle cx="{20 + 20 * i}" cy="{BAR_HEIGHT / 2:g}" r="6" fill="{color}"/>'
              for i, color in enumerate(("#ff5f57", "#febc2e", "#28c840"))]
    parts.append(f'<text x="{width / 2:g}" y="{BAR_HEIGHT / 2 + 5:g}" text-anchor="middle" fill="{QUIET}">'
                 f"{escape(title)}</text>")
    for i, line in enumerate(screen.lines):
        y = BAR_HEIGHT + MARGIN + FONT_SIZE - 2 + i * LINE_HEIGHT
        parts += [drawn_run(column, text, style, y) for column, text, style in runs(line)]
    body = "\n".join(parts)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            f'role="img" aria-labelledby="title desc" font-family="{FONT}" font-size="{FONT_SIZE}" '
            f'fill="{FOREGROUND}">\n'
            f'<title id="title">{escape(title)}</title>\n<desc id="desc">{escape(description)}</desc>\n'
            f"{body}\n</svg>\n")
