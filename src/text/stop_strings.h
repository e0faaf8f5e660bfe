// Watches a growing text for strings that end it. Text that may be the start of a stop string is
// held back, so no part of a stop string is ever shown.
//
// The text ends as soon as any stop string is complete. If several complete at the same byte, the
// longest counts. So the outcome does not depend on how the text was split into pushes. A byte
// costs amortised constant time per stop string.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace knap {

class StopStrings {
  public:
    // Throws knap::Error when a string is empty or not UTF-8. (UTF-8 ensures that whole characters
    // in give whole characters out.)
    explicit StopStrings(std::vector<std::string> strings);

    struct Step {
        std::string text;  // safe to show
        bool stopped;      // a stop string is complete; `text` is the last text before it
    };

    // Adds text, which must be whole characters. Ignores it after a stop.
    Step push(std::string_view text);
    // Ends the text and returns what was held back, because no stop string can complete.
    std::string finish();
    const std::string& found() const { return found_; }  // the string that ended the text, if any

  private:
    // One stop string, and how much of it the text so far ends with (the automaton of Knuth, Morris
    // and Pratt).
    class Matcher {
      public:
        explicit Matcher(std::string string);
        void advance(char byte);
        std::size_t n_matched() const { return n_matched_; }
        bool is_complete() const { return n_matched_ == string_.size(); }

      private:
        std::string string_;
        // border_[n]: length of the longest proper prefix of the string that is also a suffix of
        // its first n bytes
        std::vector<std::size_t> border_;
        std::size_t n_matched_ = 0;
    };

    bool advance(char byte);  // true: a string is complete

    std::vector<Matcher> matchers_;
    std::string found_;
    std::string held_;           // the start of some stop string
    std::size_t n_suspect_ = 0;  // length of the longest such start that the text ends with
    bool has_stopped_ = false;
};

}  // namespace knap
