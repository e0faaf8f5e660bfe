#include "runtime/scheduling/pass_picker.h"

#include <algorithm>

namespace knap {

namespace {

// What a pass has left, in rows.
struct Room {
    int n_rows;
    int n_prompt_rows;  // of these, for prompts

    int for_prompts() const { return std::min(n_rows, n_prompt_rows); }
    void take(int n, PassKind kind) {
        n_rows -= n;
        n_prompt_rows -= kind == PassKind::prompt ? n : 0;
    }
};

class Picker {
  public:
    Picker(std::span<const RowRun* const> waiting, const PickRules& rules, PassPick& pick)
        : waiting_(waiting),
          rules_(rules),
          pick_(pick),
          room_{rules.limits.max_shared_rows, rules.max_prompt_rows} {}

    // The pass of the oldest run.
    void fill() {
        oldest_ = waiting_.front();
        // A prompt gets more if rows are left.
        add(0, may_be_divided(*oldest_) ? 1 : oldest_->n_rows);
        add_others([](PassKind kind) { return kind != PassKind::prompt; });
        pick_.is_full = room_.n_rows <= 0;
        if (may_be_divided(*oldest_)) {
            const int n_more = std::min(oldest_->n_rows - 1, std::max(0, room_.for_prompts()));
            pick_.parts.front().n_rows += n_more;
            room_.take(n_more, PassKind::prompt);
        }
        add_others([](PassKind kind) { return kind == PassKind::prompt; });
        if (pick_.parts.size() == 1) {
            pick_.parts.front().n_rows = rows_alone(*oldest_, rules_);
        }
    }

  private:
    bool may_be_divided(const RowRun& run) const {
        return rules_.limits.divides_prompts && run.request.kind == PassKind::prompt;
    }

    void add(std::size_t index, int n_rows) {
        pick_.parts.push_back({index, n_rows});
        room_.take(n_rows, waiting_[index]->request.kind);
    }

    template <typename IsWanted>
    void add_others(IsWanted is_wanted) {
        for (std::size_t i = 0; i < waiting_.size(); ++i) {
            const RowRun* run = waiting_[i];
            if (run == nullptr || run == oldest_ || !is_wanted(run->request.kind)) {
                continue;
            }
            const bool is_prompt = run->request.kind == PassKind::prompt;
            const int n_left = is_prompt ? room_.for_prompts() : room_.n_rows;
            const int n_rows = may_be_divided(*run) ? std::min(run->n_rows, n_left) : run->n_rows;
            if (n_rows >= 1 && n_rows <= n_left && can_share_pass(*oldest_, *run)) {
                add(i, n_rows);
            }
        }
    }

    std::span<const RowRun* const> waiting_;
    const PickRules& rules_;
    PassPick& pick_;
    Room room_;
    const RowRun* oldest_ = nullptr;
};

}  // namespace

void pick_pass(std::span<const RowRun* const> waiting, const PickRules& rules, PassPick& pick) {
    pick.parts.clear();
    pick.is_full = true;
    if (waiting.empty()) {
        return;
    }
    if (waiting.front() == nullptr) {
        pick.parts.push_back({0, 0});
        return;
    }
    Picker(waiting, rules, pick).fill();
}

int rows_alone(const RowRun& run, const PickRules& rules) {
    if (!rules.limits.divides_prompts || run.request.kind != PassKind::prompt) {
        return run.n_rows;
    }
    return std::max(1, std::min({run.n_rows, rules.limits.max_rows, rules.max_prompt_rows}));
}

}  // namespace knap
