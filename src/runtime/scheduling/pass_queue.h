// What waits for a pass, in the order of its turns. Runs that may share a pass are a group; groups
// take turns by the age of their oldest run: those of a group that found no room in its pass go
// behind the others. So nobody waits for more than one pass of each other group. The scheduler
// locks it.
#pragma once

#include <condition_variable>
#include <exception>
#include <span>
#include <vector>

#include "forward/batch.h"
#include "runtime/scheduling/client_list.h"
#include "runtime/scheduling/pass_picker.h"

namespace knap {

// A run that waits, on the stack of the thread that waits with it.
struct Ticket {
    enum class State { waiting, picked, done };

    RowRun* run = nullptr;  // null: work that runs alone, on the thread of its owner
    ClientState* client = nullptr;
    SteadyTime asked{};
    State state = State::waiting;
    std::exception_ptr error{};
    std::condition_variable wake{};  // its owner sleeps here
    // The run as it was, while a pass computes part of it.
    int n_rows = 0;
    std::span<const int> logit_rows{};

    bool is_kind(PassKind kind) const { return run != nullptr && run->request.kind == kind; }
    bool is_waiting() const { return state == State::waiting; }
    void pick(int n_first_rows);  // a pass computes these; it goes on alone if it is no run
    void restore_run() const;
    void drop();  // leaves the run not computed, and wakes its owner
};

class PassQueue {
  public:
    explicit PassQueue(const PassLimits& limits) : limits_(limits) {}
    void reserve(std::size_t n_tickets) { tickets_.reserve(n_tickets); }

    bool is_empty() const { return tickets_.empty(); }
    int n_waiting() const { return static_cast<int>(tickets_.size()); }
    bool delays_decoding() const;  // something waits that is no prompt
    Ticket* next() const { return tickets_.empty() ? nullptr : tickets_.front(); }

    void add(Ticket& ticket) { tickets_.push_back(&ticket); }
    void drop(Ticket& ticket);
    void remove(const Ticket& ticket) { std::erase(tickets_, &ticket); }
    void drop_unwanted();

    // Whether the next pass has no room for another decoding row.
    bool is_next_full(int max_prompt_rows);
    // Moves the next pass to `batch`: runs that share it, or one piece of work that runs alone.
    void take_next(int max_prompt_rows, std::vector<Ticket*>& batch);

  private:
    void pick(int max_prompt_rows);

    const PassLimits limits_;
    std::vector<Ticket*> tickets_;
    std::vector<const RowRun*> runs_;  // of the tickets
    PassPick pick_;
};

}  // namespace knap
