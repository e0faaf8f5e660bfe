// What the checks of a model share: prompts to run on, and an observer for progress and
// cancellation.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "knap/types.h"

namespace knap {

struct CheckPrompt {
    std::string id;
    std::vector<Token> tokens;  // at least one
};

// Members may be empty. Called on the caller's thread; `is_cancelled` also on compute threads, so
// it should only read a flag.
struct CheckObserver {
    std::function<void(double fraction)> on_progress{};
    std::function<bool()> is_cancelled{};

    void progress(double fraction) const {
        if (on_progress) {
            on_progress(fraction);
        }
    }
    bool cancelled() const { return is_cancelled && is_cancelled(); }
};

}  // namespace knap
