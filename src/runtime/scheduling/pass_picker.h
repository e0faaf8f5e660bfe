// Which of the waiting runs the next pass computes, and how many rows of each: arithmetic, without
// threads. The oldest run goes first; it decides which others may join (can_share_pass). Rows that
// somebody decodes go before rows of prompts.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "forward/batch.h"

namespace knap {

struct PickRules {
    PassLimits limits{};
    // Of all prompts of a pass together; the oldest run gets a row in any case. Only prompts that
    // may be divided can be kept to it when they are the oldest.
    int max_prompt_rows = std::numeric_limits<int>::max();
};

struct PassPick {
    struct Part {
        std::size_t index = 0;  // among those that wait
        int n_rows = 0;         // the first rows of a prompt, all rows of any other run
        bool operator==(const Part&) const = default;
    };
    std::vector<Part> parts;
    // No run that arrives now could get a row, unless prompts give one up: there is no reason to
    // wait for more.
    bool is_full = true;
};

// `waiting` is in the order of turns, the oldest first; null stands for work that runs alone. Fills
// `pick`, whose memory is used again. No part is picked only if nothing waits.
void pick_pass(std::span<const RowRun* const> waiting, const PickRules& rules, PassPick& pick);

// How many rows of a run a pass of its own computes.
int rows_alone(const RowRun& run, const PickRules& rules);

}  // namespace knap
