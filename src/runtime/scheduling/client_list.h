// The sessions that are being served, as the scheduler sees them: which of them passes wait for,
// which of them decode, and whether one is as good as alone. Times come from the caller, and
// so does the lock.
#pragma once

#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "forward/pass.h"
#include "runtime/scheduling/pass_times.h"

namespace knap {

using SteadyTime = std::chrono::steady_clock::time_point;

struct ClientState {
    std::thread::id thread{};               // asks for its passes
    SteadyTime latest_time{};               // when it came or was answered
    std::optional<PassKind> latest_kind{};  // of what it asked for
    bool is_due = false;                    // was answered: passes wait for what it asks for next
    RunningMean other_rows{0.25};           // in its decoding passes: see PassFacts
    RunningMean other_tokens{0.25};

    void ask(std::optional<PassKind> kind);  // nullopt: work that runs alone
    void answer(SteadyTime now);
};

class ClientList {
  public:
    void add(ClientState& client) { clients_.push_back(&client); }
    void remove(ClientState& client) { std::erase(clients_, &client); }

    // Null if the thread has none; the latest if it has several.
    ClientState* of_thread(std::thread::id thread) const;
    int count_besides(const ClientState* client) const;

    bool is_any_due() const;
    void wait_for_none();  // nobody is due until it has asked for a pass again
    bool is_any_decoding(SteadyTime now) const;
    // Whether all others came or were answered before `time`: their users are slow.
    bool are_quiet_besides(const ClientState* client, SteadyTime time) const;

  private:
    std::vector<ClientState*> clients_;  // in the order in which they came
};

}  // namespace knap
