// Watches a growing text for strings that end it. Text that may be the beginning of a stop string
// is held back, so nothing of a stop string is ever shown.
//
// The text ends as soon as any stop string is complete; of several that are complete at the same
// byte the longest counts. That makes the outcome independent of how the text was split into
// pushes. A byte costs one step per stop string, whatever came before it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace knap {

class StopStrings {
  public:
    // Throws when a string is empty or not UTF-8. (UTF-8 lets whole characters in come out as whole
    // characters.)
    explicit StopStrings(std::vector<std::string> strings);

    struct Step {
        std::string text;  // safe to show
        bool stopped;      // a stop string is complete: `text` is the last that comes before it
    };

    // Takes the next text, whole characters. After it stopped, further text is ignored.
    Step push(std::string_view text);
    // Ends the text: what was held back, since no stop string can follow.
    std::string finish();

  private:
    // One string and how much of it the text so far ends with (the automaton of Knuth, Morris and
    // Pratt).
    class Matcher {
      public:
        explicit Matcher(std::string string);
        void advance(char byte);
        std::size_t n_matched() const { return n_matched_; }
        bool is_complete() const { return n_matched_ == string_.size(); }

      private:
        std::string string_;
        // border_[n]: length of the longest proper prefix of the string that ends its first n bytes
        // too
        std::vector<std::size_t> border_;
        std::size_t n_matched_ = 0;
    };

    bool advance(char byte);  // true: a string is complete

    std::vector<Matcher> matchers_;
    std::string held_;           // a beginning of some stop string
    std::size_t n_suspect_ = 0;  // how many of the latest bytes such a beginning covers
    bool has_stopped_ = false;
};

}  // namespace knap
