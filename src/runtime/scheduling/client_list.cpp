#include "runtime/scheduling/client_list.h"

#include <algorithm>

namespace knap {

namespace {

// A session decodes if its latest pass was a decoding one, at most this long ago.
constexpr std::chrono::seconds kDecodingTime{1};

}  // namespace

void ClientState::ask(std::optional<PassKind> kind) {
    is_due = false;
    if (kind.has_value()) {
        latest_kind = kind;
    }
}

void ClientState::answer(SteadyTime now) {
    is_due = latest_kind != PassKind::search;
    latest_time = now;
}

ClientState* ClientList::of_thread(std::thread::id thread) const {
    const auto found = std::find_if(clients_.rbegin(), clients_.rend(),
                                    [&](const ClientState* it) { return it->thread == thread; });
    return found == clients_.rend() ? nullptr : *found;
}

int ClientList::count_besides(const ClientState* client) const {
    return static_cast<int>(clients_.size()) - (client != nullptr ? 1 : 0);
}

bool ClientList::is_any_due() const {
    return std::ranges::any_of(clients_, &ClientState::is_due);
}

void ClientList::wait_for_none() {
    for (ClientState* client : clients_) {
        client->is_due = false;
    }
}

bool ClientList::is_any_decoding(SteadyTime now) const {
    return std::ranges::any_of(clients_, [&](const ClientState* it) {
        return it->latest_kind == PassKind::decode && now - it->latest_time < kDecodingTime;
    });
}

bool ClientList::are_quiet_besides(const ClientState* client, SteadyTime time) const {
    return std::ranges::all_of(clients_, [&](const ClientState* other) {
        return other == client || other->latest_time < time;
    });
}

}  // namespace knap
