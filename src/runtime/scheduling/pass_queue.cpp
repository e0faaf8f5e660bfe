#include "runtime/scheduling/pass_queue.h"

#include <algorithm>

namespace knap {

void Ticket::pick(int n_first_rows) {
    state = State::picked;
    if (run == nullptr) {
        return;
    }
    n_rows = run->n_rows;
    logit_rows = run->request.logit_rows;
    if (n_first_rows < n_rows) {
        run->n_rows = n_first_rows;
        run->request.logit_rows = {};  // a prompt has them at its end
    }
}

void Ticket::restore_run() const {
    run->n_rows = n_rows;
    run->request.logit_rows = logit_rows;
}

void Ticket::drop() {
    run->result->is_complete = false;
    run->result->n_rows = 0;
    state = State::done;
    wake.notify_one();
}

bool PassQueue::delays_decoding() const {
    return std::ranges::any_of(tickets_,
                               [](const Ticket* it) { return !it->is_kind(PassKind::prompt); });
}

void PassQueue::drop(Ticket& ticket) {
    std::erase(tickets_, &ticket);
    ticket.drop();
}

void PassQueue::drop_unwanted() {
    std::erase_if(tickets_, [](Ticket* it) {
        const bool is_unwanted = it->run != nullptr && it->run->is_unwanted();
        if (is_unwanted) {
            it->drop();
        }
        return is_unwanted;
    });
}

bool PassQueue::is_next_full(int max_prompt_rows) {
    pick(max_prompt_rows);
    return pick_.is_full;
}

void PassQueue::take_next(int max_prompt_rows, std::vector<Ticket*>& batch) {
    pick(max_prompt_rows);
    batch.clear();
    for (const PassPick::Part& part : pick_.parts) {
        batch.push_back(tickets_[part.index]);
        batch.back()->pick(part.n_rows);
    }
    std::erase_if(tickets_, [](const Ticket* it) { return !it->is_waiting(); });
    if (batch.empty() || batch.front()->run == nullptr) {
        return;
    }
    const RowRun& picked = *batch.front()->run;
    std::stable_partition(tickets_.begin(), tickets_.end(), [&](const Ticket* it) {
        return it->run == nullptr || !can_share_pass(picked, *it->run);
    });
}

void PassQueue::pick(int max_prompt_rows) {
    runs_.clear();
    for (const Ticket* ticket : tickets_) {
        runs_.push_back(ticket->run);
    }
    pick_pass(runs_, {limits_, max_prompt_rows}, pick_);
}

}  // namespace knap
