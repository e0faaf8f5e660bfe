#include "runtime/scheduler.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace knap {

namespace {

// How often a thread that waits asks whether its run is still wanted.
constexpr std::chrono::milliseconds kCancelPoll{20};

SteadyTime::duration duration_of(double ms) {
    return std::chrono::duration_cast<SteadyTime::duration>(
        std::chrono::duration<double, std::milli>(ms));
}

// Whether the owner of a ticket need not wait any more.
bool is_served(const Ticket& ticket) {
    return ticket.state == (ticket.run == nullptr ? Ticket::State::picked : Ticket::State::done);
}

}  // namespace

Scheduler::Scheduler(BatchRunner& runner, const SchedulerOptions& options)
    : runner_(runner),
      options_(options),
      limits_(runner.limits()),
      queue_(limits_),
      times_(options.target_ms) {}

void Scheduler::run(RowRun& run) {
    KNAP_ASSERT(run.result != nullptr && run.n_rows >= 1, "a run has rows and a place for results");
    const int n_rows_alone = rows_alone(run, {limits_});
    KNAP_ASSERT(n_rows_alone <= limits_.max_rows, "a run fits into a pass");
    Ticket ticket{.run = &run};
    Lock lock(mutex_);
    ask(ticket, run.request.kind);
    if (!is_busy_ && queue_.is_empty() && clients_.count_besides(ticket.client) == 0) {
        is_busy_ = true;
        ticket.pick(n_rows_alone);
        batch_.assign(1, &ticket);
        compute(lock, ticket);
    } else {
        wait_for_turn(lock, ticket);
    }
    wake_next();
    lock.unlock();
    if (ticket.error != nullptr) {
        std::rethrow_exception(ticket.error);
    }
}

void Scheduler::run_alone(const std::function<void()>& work) {
    Ticket ticket;
    Lock lock(mutex_);
    ask(ticket, std::nullopt);
    if (!is_busy_ && queue_.is_empty()) {
        is_busy_ = true;
    } else {
        wait_for_turn(lock, ticket);
    }
    lock.unlock();
    try {
        work();
    } catch (...) {
        ticket.error = std::current_exception();
    }
    lock.lock();
    is_busy_ = false;
    answer(ticket, Clock::now());
    wake_next();
    lock.unlock();
    if (ticket.error != nullptr) {
        std::rethrow_exception(ticket.error);
    }
}

Scheduler::Client::Client(Scheduler& scheduler) : scheduler_(scheduler) {
    state_.thread = std::this_thread::get_id();
    state_.latest_time = Clock::now();
    const Lock lock(scheduler_.mutex_);
    scheduler_.clients_.add(state_);
}

Scheduler::Client::~Client() {
    const Lock lock(scheduler_.mutex_);
    scheduler_.clients_.remove(state_);
    scheduler_.tell_gatherer();
    scheduler_.wake_next();  // a search may have waited for this session
}

Scheduler::Load Scheduler::load() const {
    const Lock lock(mutex_);
    const ClientState* client = clients_.of_thread(std::this_thread::get_id());
    return {.n_others = clients_.count_besides(client),
            .n_other_rows = client == nullptr ? 0 : client->other_rows.value(),
            .n_waiting = queue_.n_waiting()};
}

void Scheduler::ask(Ticket& ticket, std::optional<PassKind> kind) {
    ticket.client = clients_.of_thread(std::this_thread::get_id());
    if (ticket.client != nullptr) {
        ticket.client->ask(kind);
    }
}

void Scheduler::answer(Ticket& ticket, SteadyTime now) {
    ticket.state = Ticket::State::done;
    if (ticket.client != nullptr) {
        ticket.client->answer(now);
    }
}

void Scheduler::wait_for_turn(Lock& lock, Ticket& own) {
    queue_.add(own);
    tell_gatherer();
    while (!is_served(own)) {
        if (may_lead(own)) {
            lead(lock, own);
        } else {
            wait(lock, own);
        }
    }
}

bool Scheduler::may_lead(const Ticket& own) const {
    if (is_busy_ || !own.is_waiting()) {
        return false;
    }
    return !own.is_kind(PassKind::search) ||
           (queue_.n_waiting() == 0 && search_time() <= Clock::now());
}

SteadyTime Scheduler::search_time() const {
    return clients_.quiet_time(duration_of(options_.quiet_ms));
}

// Until something may have changed for `own`.
void Scheduler::wait(Lock& lock, Ticket& own) {
    const bool is_search = own.is_kind(PassKind::search);
    const bool may_be_dropped = own.run != nullptr && own.run->is_cancelled != nullptr;
    if (!own.is_waiting() || (!is_search && !may_be_dropped)) {
        own.wake.wait(lock);
        return;
    }
    SteadyTime until = Clock::now() + kCancelPoll;
    if (is_search && !is_busy_ && queue_.n_waiting() == 0) {
        until = std::min(until, search_time());
    }
    own.wake.wait_until(lock, until);
    if (own.is_waiting() && own.run->is_unwanted()) {
        queue_.drop(own);
    }
}

// Has somebody who waits lead.
void Scheduler::wake_next() {
    Ticket* next = queue_.next();
    if (!is_busy_ && next != nullptr) {
        next->wake.notify_one();
    }
}

// One pass for those who wait, or a turn for work that runs alone.
void Scheduler::lead(Lock& lock, const Ticket& own) {
    is_busy_ = true;
    gather(lock);
    queue_.drop_unwanted();
    queue_.take_next(max_prompt_rows(), batch_);
    if (!batch_.empty() && batch_.front()->run == nullptr) {
        batch_.front()->wake.notify_one();  // its owner ends the turn
        return;
    }
    if (batch_.empty()) {
        is_busy_ = false;
    } else {
        compute(lock, own);
    }
    if (own.is_kind(PassKind::search)) {
        wake_next();  // a search that waits again does not lead the others
    }
}

// Waits for the sessions that are due. Those that are late are not waited for again until they
// have asked for a pass.
void Scheduler::gather(Lock& lock) {
    if (is_gathered()) {
        return;
    }
    const double wait_ms = std::clamp(options_.wait_share * times_.mean_ms(), options_.min_wait_ms,
                                      options_.max_wait_ms);
    is_gathering_ = true;
    if (!gathered_.wait_for(lock, duration_of(wait_ms), [this] { return is_gathered(); })) {
        clients_.wait_for_none();
    }
    is_gathering_ = false;
}

bool Scheduler::is_gathered() {
    return !clients_.is_any_due() || queue_.is_next_full(max_prompt_rows());
}

void Scheduler::tell_gatherer() {
    if (is_gathering_ && is_gathered()) {
        gathered_.notify_one();
    }
}

// Prompts are cut short where somebody would wait for them.
int Scheduler::max_prompt_rows() const {
    const bool is_bounded = queue_.delays_decoding() || clients_.is_any_decoding(Clock::now());
    return is_bounded ? times_.max_prompt_rows() : std::numeric_limits<int>::max();
}

void Scheduler::compute(Lock& lock, const Ticket& own) {
    runs_.clear();
    for (const Ticket* ticket : batch_) {
        runs_.push_back(ticket->run);
    }
    lock.unlock();
    std::exception_ptr error;
    const SteadyTime start = Clock::now();
    try {
        runner_.run(runs_);
    } catch (...) {
        error = std::current_exception();
    }
    const SteadyTime end = Clock::now();
    lock.lock();
    is_busy_ = false;
    deliver(own, start, end, error);
}

void Scheduler::deliver(const Ticket& own,
                        SteadyTime start,
                        SteadyTime end,
                        const std::exception_ptr& error) {
    const double ms = std::chrono::duration<double, std::milli>(end - start).count();
    const RowRun& first = *runs_.front();
    // An abandoned pass says nothing about costs, and nobody waits for searches.
    if (error == nullptr && first.result->is_complete && first.request.kind != PassKind::search) {
        times_.add(sample_of(runs_, ms));
    }
    for (Ticket* ticket : batch_) {
        if (error == nullptr && ticket->client != nullptr && ticket->is_kind(PassKind::decode)) {
            ticket->client->other_rows.add(ticket->run->result->pass.n_others);
        }
        ticket->restore_run();
        ticket->error = error;
        answer(*ticket, end);
        if (ticket != &own) {
            ticket->wake.notify_one();
        }
    }
}

}  // namespace knap
