#include "runtime/scheduling/scheduler.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace knap {

namespace {

// For so many that ask at once, nothing is allocated between passes.
constexpr std::size_t kMaxSessions = 2 * kMaxParallel;
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
      times_(options.target_ms) {
    queue_.reserve(kMaxSessions);
    batch_.reserve(kMaxSessions);
    runs_.reserve(kMaxSessions);
}

void Scheduler::run(RowRun& run) {
    KNAP_ASSERT(run.result != nullptr && run.n_rows >= 1, "a run has rows and a place for results");
    const int n_rows_alone = rows_alone(run, {limits_});
    KNAP_ASSERT(n_rows_alone <= limits_.max_rows, "a run fits into a pass");
    const bool is_search = run.request.kind == PassKind::search;
    Ticket ticket{.run = &run};
    Lock lock(mutex_);
    if (is_search && !may_search()) {
        ticket.drop();
        return;
    }
    ask(ticket, run.request.kind);
    const bool is_alone = is_search || clients_.count_besides(ticket.client) == 0;
    if (!is_busy_ && queue_.is_empty() && is_alone) {
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
}

Load Scheduler::load() const {
    const Lock lock(mutex_);
    const ClientState* client = clients_.of_thread(std::this_thread::get_id());
    const int n_sessions = clients_.count_besides(client);
    if (client == nullptr || n_sessions == 0) {
        return {.n_sessions = n_sessions, .n_waiting = queue_.n_waiting()};
    }
    return {
        .n_sessions = n_sessions,
        .others = {.n_rows = client->other_rows.value(), .n_tokens = client->other_tokens.value()},
        .n_waiting = queue_.n_waiting()};
}

bool Scheduler::may_search() const {
    const SteadyTime quiet_since = Clock::now() - duration_of(options_.quiet_ms);
    return !is_busy_ && queue_.is_empty() &&
           clients_.are_quiet_besides(clients_.of_thread(std::this_thread::get_id()), quiet_since);
}

void Scheduler::ask(Ticket& ticket, std::optional<PassKind> kind) {
    ticket.asked = Clock::now();
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
    try {
        while (!is_served(own)) {
            if (may_lead(own)) {
                lead(lock, own);
            } else {
                wait(lock, own);
            }
        }
    } catch (...) {  // it could not lead: others may
        queue_.remove(own);
        wake_next();
        throw;
    }
}

bool Scheduler::may_lead(const Ticket& own) const {
    return !is_busy_ && own.is_waiting();
}

// Until something may have changed for `own`.
void Scheduler::wait(Lock& lock, Ticket& own) {
    const bool may_be_dropped = own.run != nullptr && own.run->is_cancelled != nullptr;
    if (!own.is_waiting() || !may_be_dropped) {
        own.wake.wait(lock);
        return;
    }
    own.wake.wait_for(lock, kCancelPoll);
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
    try {
        gather(lock);
        queue_.drop_unwanted();
        queue_.take_next(max_prompt_rows(), batch_);
    } catch (...) {
        is_busy_ = false;
        is_gathering_ = false;
        throw;
    }
    if (!batch_.empty() && batch_.front()->run == nullptr) {
        batch_.front()->wake.notify_one();  // its owner ends the turn
        return;
    }
    if (batch_.empty()) {
        is_busy_ = false;
    } else {
        compute(lock, own);
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
    const PassSample sample = sample_of(runs_, ms);
    // An abandoned pass says nothing about costs, and a search is no usual pass.
    if (error == nullptr && first.result->is_complete && first.request.kind != PassKind::search) {
        times_.add(sample);
    }
    for (Ticket* ticket : batch_) {
        PassFacts& facts = ticket->run->result->pass;
        facts.wait_ms = std::chrono::duration<double, std::milli>(start - ticket->asked).count();
        if (error == nullptr && ticket->client != nullptr && sample.is_whole_model &&
            ticket->is_kind(PassKind::decode)) {
            ticket->client->other_rows.add(facts.n_others);
            ticket->client->other_tokens.add(facts.n_other_tokens);
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
