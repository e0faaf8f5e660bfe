// Lines from standard input that Ctrl-C can interrupt, which std::getline cannot be.
#pragma once

#include <string>

namespace knap {

class LineReader {
  public:
    enum class Outcome { line, end, interrupted };

    // Waits for a line and puts it into `line`, without its newline. The last line may lack one.
    // `interrupted` means that `wake_descriptor` became readable first (-1: it never does); what
    // was read of the line is dropped. Throws when input cannot be read.
    Outcome read(std::string& line, int wake_descriptor = -1);

  private:
    std::string pending_;  // read, but not yet given out
};

}  // namespace knap
