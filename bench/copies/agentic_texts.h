// Two kinds of work that repeats itself, as requests with their answers: a file that is edited turn
// after turn, and records that are put into one form of JSON. The answers are given, because a
// small model does not make the edits that it is asked for.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace knap::bench {

struct TextRequest {
    std::string prompt{};  // the whole conversation so far
    std::string answer{};
};

inline constexpr std::string_view kEditedFile =
    R"(# Counts what a shop has in store, and says what to order.
import csv

MINIMUM = 5
FILE_NAME = "stock.csv"


class Item:
    def __init__(self, name, count, price):
        self.name = name
        self.count = count
        self.price = price

    def value(self):
        return self.count * self.price


def read_items(path):
    items = []
    with open(path) as file:
        for row in csv.reader(file):
            items.append(Item(row[0], int(row[1]), float(row[2])))
    return items


def missing(items):
    return [item for item in items if item.count < MINIMUM]


def report(items):
    total = 0
    for item in items:
        total += item.value()
        print(item.name, item.count, item.value())
    print("total", total)


def main():
    items = read_items(FILE_NAME)
    report(items)
    for item in missing(items):
        print("order", item.name)


main()
)";

struct Edit {
    std::string_view request;
    std::string_view from;
    std::string_view to;
};

inline constexpr std::array<Edit, 10> kEdits{{
    {"Order when fewer than eight are left.", "MINIMUM = 5", "MINIMUM = 8"},
    {"Call the function that lists what is short `to_order`.", "missing(", "to_order("},
    {"Round values to cents.", "return self.count * self.price",
     "return round(self.count * self.price, 2)"},
    {"Skip empty rows of the file.", "        for row in csv.reader(file):\n",
     "        for row in csv.reader(file):\n            if not row:\n                continue\n"},
    {"Say how many to order.", "print(\"order\", item.name)",
     "print(\"order\", MINIMUM - item.count, \"of\", item.name)"},
    {"Read the file as UTF-8.", "open(path)", "open(path, encoding=\"utf-8\")"},
    {"Sort the report by name.", "    for item in items:\n        total",
     "    for item in sorted(items, key=lambda item: item.name):\n        total"},
    {"Rename `count` to `n_left`.", "count", "n_left"},
    {"Print the total with two digits.", "print(\"total\", total)",
     "print(f\"total {total:.2f}\")"},
    {"Run main only when the file is a program.", "\n\nmain()\n",
     "\n\nif __name__ == \"__main__\":\n    main()\n"},
}};

inline std::string with_edit(std::string text, const Edit& edit) {
    for (std::size_t at = text.find(edit.from); at != std::string::npos;
         at = text.find(edit.from, at + edit.to.size())) {
        text.replace(at, edit.from.size(), edit.to);
    }
    return text;
}

// One conversation: every answer is the whole file after an edit.
inline std::vector<TextRequest> edit_one_file() {
    std::vector<TextRequest> requests;
    std::string file(kEditedFile);
    std::string conversation = "This is a program:\n\n" + file;
    for (const Edit& edit : kEdits) {
        conversation += "\nUser: " + std::string(edit.request) + " Write the whole program.\n";
        file = with_edit(std::move(file), edit);
        requests.push_back({.prompt = conversation, .answer = file});
        conversation += file;
    }
    return requests;
}

// Twenty requests that know nothing of each other.
inline std::vector<TextRequest> fill_forms() {
    constexpr std::array kNames{"Ada Berg", "Jon Falk", "Mia Lund", "Leo Holm", "Eva Dahl"};
    constexpr std::array kTowns{"Bergen", "Malmo", "Turku", "Aarhus"};
    constexpr std::array kGoods{"lamp", "oak table", "blue chair"};
    std::vector<TextRequest> requests;
    for (std::size_t i = 0; i < 20; ++i) {
        const std::string name = kNames[i % kNames.size()];
        const std::string town = kTowns[i % kTowns.size()];
        const std::string good = kGoods[i % kGoods.size()];
        const std::string number = std::to_string(1040 + 17 * i);
        const std::string amount = std::to_string(1 + i * i % 7);
        const bool is_paid = i % 3 == 1;
        requests.push_back({.prompt = "Put the order into the form.\n" + name + " from " + town +
                                      " wants " + amount + " of: " + good + ". Order " + number +
                                      (is_paid ? ", paid" : ", to be paid") + ".\n",
                            .answer = "{\n  \"order\": {\n    \"number\": " + number +
                                      ",\n    \"is_paid\": " + (is_paid ? "true" : "false") +
                                      "\n  },\n  \"customer\": {\n    \"name\": \"" + name +
                                      "\",\n    \"town\": \"" + town +
                                      "\",\n    \"language\": \"en\"\n  },\n  \"items\": [\n    {\n"
                                      "      \"name\": \"" +
                                      good + "\",\n      \"amount\": " + amount +
                                      "\n    }\n  ]\n}\n"});
    }
    return requests;
}

}  // namespace knap::bench
