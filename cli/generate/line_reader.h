// Reads lines from standard input. Unlike std::getline, Ctrl-C can interrupt it.
#pragma once

#include <string>

namespace knap {

class LineReader {
  public:
    enum class Outcome { line, end, interrupted };

    // Waits for a line and stores it in `line`, without its newline. The last line may lack one.
    // Returns `interrupted` when `wake_descriptor` becomes readable first (-1: never), and drops
    // the partial line. Throws when input cannot be read.
    Outcome read(std::string& line, int wake_descriptor = -1);

  private:
    std::string pending_;  // read but not yet returned
};

}  // namespace knap
