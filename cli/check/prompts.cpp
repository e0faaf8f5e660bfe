#include "cli/check/prompts.h"

#include <array>

#include "base/text.h"

namespace knap {
namespace {

// A diary of a quarry. Its days are similar but never equal, so copies are sometimes right, and it
// is long enough for windows to leave rows out.
std::string quarry_diary() {
    constexpr std::array kPeople{"Ines", "Matti", "Oyelaran", "Bao", "Greta"};
    constexpr std::array kStones{"flint", "chert", "obsidian", "basalt"};
    constexpr std::array kWeather{"rain until noon", "a dry wind", "fog",
                                  "clear and cold",  "heat",       "the first snow",
                                  "thunder far away"};
    constexpr int kDays = 40;
    std::string text = "This is the diary of a quarry.\n\n";
    for (std::size_t day = 1; day <= kDays; ++day) {
        text += concat("Day ", day, ". Weather: ", kWeather[day * 3 % kWeather.size()], ". ",
                       kPeople[day % kPeople.size()], " brought ", 3 + day * 7 % 19, " pieces of ",
                       kStones[day * 5 % kStones.size()], " to the bench and ",
                       kPeople[(day + 2) % kPeople.size()], " broke ", 1 + day % 4, " of them.\n");
    }
    return text + "\nWho brought the most pieces, and on which day?";
}

}  // namespace

std::vector<DataPrompt> default_check_prompts() {
    return {
        {"story", "writing", "Tell a very short story about a girl who learns to knap flint."},
        {"question", "qa", "Why do stars twinkle and planets do not?"},
        {"sum", "math",
         "A baker sells 12 loaves in the morning and 7 fewer in the afternoon. How many loaves is "
         "that in all? Show your steps."},
        {"code", "code",
         "def is_palindrome(text):\n    \"\"\"Whether text reads the same from both ends.\"\"\"\n"},
        {"list", "writing", "List the months of the year, one per line, with their days."},
        {"repeat", "extraction",
         "Repeat this sentence three times, word for word: The old bridge over the river Elm is "
         "closed to carts until the last day of June."},
        {"translation", "translation",
         "Translate into French: The library opens at nine, and the reading room at ten."},
        {"diary", "long", quarry_diary()},
    };
}

}  // namespace knap
