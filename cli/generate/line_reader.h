// Reads lines from standard input. Unlike std::getline, Ctrl-C can interrupt it, and the time until
// a line comes can be used.
#pragma once

#include <functional>
#include <string>

#include <unistd.h>

namespace knap {

class LineReader {
  public:
    explicit LineReader(int descriptor = STDIN_FILENO) : descriptor_(descriptor) {}

    enum class Outcome { line, end, interrupted };

    // Does a piece of work and returns whether there is more. It should end early once `is_over()`,
    // which any thread may ask.
    using IdleWork = std::function<bool(const std::function<bool()>& is_over)>;

    // Waits for a line and stores it in `line`, without its newline. The last line may lack one.
    // Returns `interrupted` when `wake_descriptor` becomes readable first (-1: never), and drops
    // the partial line. Throws when input cannot be read. Meanwhile does `work`, if there is any,
    // piece by piece, until no more is left.
    Outcome read(std::string& line, int wake_descriptor = -1, const IdleWork& work = {});

  private:
    int descriptor_;
    std::string pending_;  // read but not yet returned
};

}  // namespace knap
