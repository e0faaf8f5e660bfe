"""The texts of the question `agent`: a file with edits, and a form with notes to fill it from. Written for this benchmark."""

FILE = '''"""Keeps the books of a shelf that neighbours lend from."""
from dataclasses import dataclass, field
from datetime import date, timedelta

LOAN_DAYS = 21
MAX_LOANS = 3


class ShelfError(Exception):
    """A book cannot be lent or given back."""


@dataclass
class Book:
    title: str
    author: str
    lent_to: str = ""
    due: date | None = None


@dataclass
class Shelf:
    books: dict = field(default_factory=dict)
    log: list = field(default_factory=list)

    def add(self, number, title, author):
        self.books[number] = Book(title, author)

    def find(self, number):
        if number not in self.books:
            raise ShelfError(f"no book {number}")
        return self.books[number]

    def loans_of(self, name):
        return [book for book in self.books.values() if book.lent_to == name]

    def lend(self, number, name, today):
        book = self.find(number)
        if book.lent_to:
            raise ShelfError(f"{book.title} is lent")
        if len(self.loans_of(name)) >= MAX_LOANS:
            raise ShelfError(f"{name} has enough books")
        book.lent_to = name
        book.due = today + timedelta(days=LOAN_DAYS)
        self.log.append((today, "lend", number))

    def give_back(self, number, today):
        book = self.find(number)
        if not book.lent_to:
            raise ShelfError(f"{book.title} is not lent")
        book.lent_to = ""
        book.due = None
        self.log.append((today, "back", number))

    def late(self, today):
        return [book for book in self.books.values()
                if book.due and book.due < today]

    def report(self, today):
        for book in self.late(today):
            print(f"{book.title}: {book.lent_to}")
'''

# Each edit replaces a text that is in the file once; the edits build on each other. The first are done when the question
# begins.
N_DONE = 2
EDITS = (
    ("Lend books for 28 days.", "LOAN_DAYS = 21", "LOAN_DAYS = 28"),
    ("Let everybody have 5 books at once.", "MAX_LOANS = 3", "MAX_LOANS = 5"),
    ("Give every book a year.", "    author: str\n    lent_to", "    author: str\n    year: int = 0\n    lent_to"),
    ("Say in the error which books there are when one is not found.", 'raise ShelfError(f"no book {number}")',
     'raise ShelfError(f"no book {number} among {sorted(self.books)}")'),
    ("Rename `give_back` to `take_back`.", "def give_back(", "def take_back("),
    ("Say in the error who has a book that is lent.", '{book.title} is lent"', '{book.title} is lent to {book.lent_to}"'),
    ("Print the date on which a late book was due.", 'print(f"{book.title}: {book.lent_to}")',
     'print(f"{book.title}: {book.lent_to}, due {book.due}")'),
    ("Add the name to the log of a loan.", '(today, "lend", number)', '(today, "lend", number, name)'),
    ("Sort late books by their date.", """        return [book for book in self.books.values()
                if book.due and book.due < today]""", """        late = [book for book in self.books.values()
                if book.due and book.due < today]
        return sorted(late, key=lambda book: book.due)"""),
    ("Refuse to add a number twice.", "        self.books[number] = Book(title, author)",
     """        if number in self.books:
            raise ShelfError(f"there is a book {number}")
        self.books[number] = Book(title, author)"""),
    ("Write `loan` in the log where it says `lend`.", '"lend", number, name)', '"loan", number, name)'),
    ("Give every book a mark, a text, after its year.", "    year: int = 0\n", '    year: int = 0\n    mark: str = ""\n'),
)

FORM = {
    "type": "object", "additionalProperties": False,
    "required": ["customer", "phone", "item", "fault", "days", "is_urgent", "payment"],
    "properties": {
        "customer": {"type": "string", "maxLength": 40},
        "phone": {"type": "string", "maxLength": 16},
        "item": {"type": "string", "maxLength": 40},
        "fault": {"type": "string", "maxLength": 80},
        "days": {"type": "integer", "minimum": 0, "maximum": 99},
        "is_urgent": {"type": "boolean"},
        "payment": {"type": "string", "enum": ["cash", "card", "invoice"]},
    },
}

# A note and its form, as an example.
EXAMPLE = ("Kettle of Ms Alvarez, does not get warm. 555 0170, 4 days, she pays cash.",
           {"customer": "Ms Alvarez", "phone": "555 0170", "item": "Kettle", "fault": "does not get warm", "days": 4,
            "is_urgent": False, "payment": "cash"})

NOTES = (
    "Mrs Okafor, 555 0143, brings a bicycle. The chain slips. She wants it in 3 days and pays by card.",
    "A toaster of Mr Lindqvist (555 0178) does not switch off. No hurry, two weeks are fine. Cash.",
    "Urgent: the hearing aid of old Mr Baptiste crackles, 555 0112. Tomorrow if we can. Send an invoice.",
    "Ines Duarte left her sewing machine. The needle hits the plate. Call 555 0199 in 5 days, she pays cash.",
    "School band, ask for Miss Park at 555 0121: a trumpet with a stuck valve, needed in 2 days for a concert. Invoice.",
    "Pavel K., 555 0155, radio without sound on one side. 10 days. Card.",
    "The bakery's scale shows 20 grams too much. It is urgent, 1 day. Phone 555 0107, Mr Haddad, invoice.",
    "Grandfather clock of the Moreaus, stops at noon. 30 days, 555 0133, cash on pick-up.",
    "Tom Abara, 555 0160: a lamp that flickers. One week. He pays by card.",
    "Laptop of Yuki Sato, the hinge is broken. 4 days, 555 0188, card.",
    "Vacuum cleaner, smells of smoke. Mrs Novak, 555 0174, 6 days, cash.",
    "Urgent! Wheelchair of Mr O'Dell, left brake does not hold. Today, so 0 days. 555 0101, invoice to the clinic.",
    "Record player, runs too fast. Lena Fischer, 555 0166, 12 days, card.",
    "Umbrella with two bent ribs for Mr Rossi, 555 0119, 8 days, he pays cash.",
    "The choir's projector loses its picture after ten minutes. Ask for Amara at 555 0150, 9 days, invoice.",
    "Coffee grinder of Samir Aziz, the motor hums and does not turn. 555 0125, 7 days. Card.",
    "Dolls' house, the light of the kitchen is out. Mrs Kowalski, 555 0137, three weeks, cash.",
    "Camera, sand in the lens. Urgent, Joana leaves in 2 days. 555 0182, card.",
    "Garden pump of Mr Eriksen loses water at the seal. 5 days, 555 0114, invoice.",
    "A kite with a torn sail, for little Ben. His father is at 555 0192. 1 week, cash.",
)


def edited_files():
    """The file after each edit."""
    files, text = [], FILE
    for _, old, new in EDITS:
        text = text.replace(old, new)
        files.append(text)
    return files
