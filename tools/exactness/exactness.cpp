#include "tools/exactness/exactness.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <iterator>
#include <mutex>
#include <sstream>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "model/cache_type.h"
#include "runtime/engine_impl.h"
#include "runtime/files/machine_fingerprint.h"
#include "tools/check/lossless_check.h"
#include "tools/exactness/eager_contenders.h"
#include "tools/exactness/requests.h"
#include "tools/exactness/temporary_folder.h"
#include "tools/exactness/variant.h"

namespace knap {
namespace {

// Changes when a case of the same number becomes another one.
constexpr std::uint64_t kFormat = 1;
constexpr int kRequests = 3;  // of a conversation

struct PlainAnswer {
    DrawnRequest request;
    Result result;
};

// What the cases of one conversation have in common.
struct Conversation {
    EngineVariant variant;
    AcceptanceRule acceptance = AcceptanceRule::shared_noise;
    int draft_max = 0;  // 0: the contender's
    std::vector<PlainAnswer> answers{};
};

std::string on_off(bool value) {
    return value ? "on" : "off";
}

std::vector<std::pair<std::string, std::string>> describe(const Conversation& of) {
    const EngineVariant& variant = of.variant;
    return {
        {"cache", std::string(to_string(variant.cache_k))},
        {"threads", concat(variant.n_threads)},
        {"rows of a pass", concat(variant.n_ubatch)},
        {"sessions", concat(variant.n_sessions)},
        {"room for", variant.has_one_context ? "one context" : "all contexts"},
        {"prefix cache", on_off(variant.prefix_cache)},
        {"costs", std::string(to_string(variant.costs))},
        {"acceptance", of.acceptance == AcceptanceRule::equality ? "equality" : "shared-noise"},
        {"draft length", of.draft_max == 0 ? "default" : concat(of.draft_max)},
    };
}

// The answers of a strategy to a conversation; nullopt when cancelled.
std::optional<std::vector<ComparedAnswer>> compare(Session& session,
                                                   const Conversation& conversation,
                                                   const Contender& contender,
                                                   const CheckObserver& observer) {
    std::vector<ComparedAnswer> answers;
    for (const auto& [request, plain] : conversation.answers) {
        GenerateOptions options = request.options;
        options.speculation = contender.speculation;
        if (options.speculation.acceptance == AcceptanceRule::shared_noise) {
            options.speculation.acceptance = conversation.acceptance;
        }
        if (options.speculation.draft_max == 0) {
            options.speculation.draft_max = conversation.draft_max;
        }
        const Result drafted =
            session.generate(request.prompt, options, {.is_cancelled = observer.is_cancelled});
        if (drafted.stop == StopReason::cancelled) {
            return std::nullopt;
        }
        ComparedAnswer answer{.sampling = request.sampling,
                              .constraint = request.constraint,
                              .n_prompt = plain.n_prompt,
                              .n_tokens = plain.n_generated,
                              .n_drafted = drafted.speculation.n_drafted,
                              .n_accepted = drafted.speculation.n_accepted,
                              .n_copied = drafted.speculation.copies.n_drafted,
                              .n_planned = drafted.speculation.plans.n_drafted,
                              .n_cascaded = drafted.speculation.cascades.n_drafted,
                              .n_forced = drafted.speculation.n_forced,
                              .difference = find_divergence(plain, drafted)};
        if (answer.difference) {
            answer.n_tokens = answer.difference->position - plain.n_prompt;
        }
        answers.push_back(std::move(answer));
    }
    return answers;
}

class Run {
  public:
    Run(const ExactnessOptions& options, ExactnessRecord& record, const CheckObserver& observer)
        : options_(options), record_(record), observer_(observer) {
        const Engine engine(options.config);
        const Engine::Impl& impl = impl_of(engine);
        config_ = engine.config();
        config_.on_load_progress = {};
        Fnv1a model;
        model.add(model_fingerprint(impl));
        // The same conversations with every instruction set, others for every model.
        seed_ = mix_in(options.seed, model.value());
        id_ = identify(impl);
        kernels_ = describe_products(impl);
        for (const CompletedCase& done : record.cases()) {
            n_tokens_ += done.run == id_ ? count_tokens(done) : 0;
        }
    }

    // False: cancelled.
    bool conversations() {
        const int n_contenders = static_cast<int>(options_.contenders.size());
        if (options_.only) {
            return converse(*options_.only / n_contenders);
        }
        for (int number = 0; n_tokens_ < options_.n_tokens; ++number) {
            if (!converse(number)) {
                return false;
            }
        }
        return true;
    }

  private:
    static std::int64_t count_tokens(const CompletedCase& done) {
        std::int64_t n = 0;
        for (const ComparedAnswer& answer : done.answers) {
            n += answer.n_tokens;
        }
        return n;
    }

    std::string identify(const Engine::Impl& engine) const {
        Fnv1a hash;
        hash.add(kFormat);
        hash.add(model_fingerprint(engine));
        hash.add(describe_products(engine));
        hash.add(device_flag());
        hash.add(options_.seed);
        hash.add(static_cast<std::uint64_t>(engine.config.n_ctx));
        hash.add(static_cast<std::uint64_t>(engine.config.n_threads));
        hash.add(static_cast<std::uint64_t>(options_.n_predict));
        for (const CheckPrompt& text : options_.texts) {
            hash.add(std::as_bytes(std::span(text.tokens)));
        }
        for (const Contender& contender : options_.contenders) {
            hash.add(contender.name);
        }
        std::ostringstream out;
        out << std::hex << hash.value();
        return out.str();
    }

    // The cases of a conversation that are wanted and not in the record.
    std::vector<int> cases_of(int conversation, const EngineVariant& variant) const {
        const int n_contenders = static_cast<int>(options_.contenders.size());
        std::vector<int> numbers;
        for (int i = 0; i < n_contenders; ++i) {
            const int number = conversation * n_contenders + i;
            const bool is_wanted = options_.only
                                       ? variant.n_sessions > 1 || number == *options_.only
                                       : !record_.has(id_, number);
            if (is_wanted) {
                numbers.push_back(number);
            }
        }
        return numbers;
    }

    bool converse(int number) {
        Draws draws(mix_in(seed_, static_cast<std::uint64_t>(number)));
        Conversation conversation{.variant = draw_variant(draws, config_.n_threads)};
        if (!device_flag().empty()) {
            conversation.variant.cache_k = CacheType::f16;  // others may not have another
            conversation.variant.cache_v = CacheType::f16;
        }
        conversation.acceptance =
            draws.one_in(3) ? AcceptanceRule::equality : AcceptanceRule::shared_noise;
        conversation.draft_max = draws.one_of({0, 0, 1, 3, 16, kMaxDraft});
        const std::vector<int> cases = cases_of(number, conversation.variant);
        return cases.empty() ||
               (write_plainly(draws, conversation) && write_cases(conversation, cases));
    }

    // Draws the requests, whose prompts go on with the answers. False: cancelled.
    bool write_plainly(Draws& draws, Conversation& conversation) const {
        Engine engine(plain_config(config_, conversation.variant));
        const RequestWriter writer(engine, options_.texts, options_.n_predict);
        Session session(engine);
        std::vector<Token> text;
        for (int i = 0; i < kRequests; ++i) {
            PlainAnswer plain{.request = writer.next(draws, text)};
            GenerateOptions options = plain.request.options;
            options.reuse_prompt = false;
            plain.result = session.generate(plain.request.prompt, options,
                                            {.is_cancelled = observer_.is_cancelled});
            if (plain.result.stop == StopReason::cancelled) {
                return false;
            }
            KNAP_ASSERT(plain.result.speculation.n_drafted == 0, "the baseline is plain decoding");
            text = plain.request.prompt;
            std::ranges::copy(plain.result.tokens, std::back_inserter(text));
            if (draws.one_in(3)) {
                plain.request.options.prediction = writer.like(draws, plain.result.tokens);
            }
            conversation.answers.push_back(std::move(plain));
        }
        return true;
    }

    // With as many sessions at once as were drawn, each on a thread of its own.
    bool write_cases(const Conversation& conversation, const std::vector<int>& cases) {
        const TemporaryFolder folder;
        Engine engine(varied_config(config_, conversation.variant, folder.path()));
        std::atomic<std::size_t> n_begun = 0;
        std::atomic<bool> is_cancelled = false;
        std::exception_ptr failure;
        const auto serve = [&] {
            try {
                Session session(engine);
                for (std::size_t i; !is_cancelled && (i = n_begun++) < cases.size();) {
                    is_cancelled = is_cancelled || !write_case(session, conversation, cases[i]);
                }
            } catch (...) {
                const std::lock_guard lock(mutex_);
                failure = std::current_exception();
                is_cancelled = true;
            }
        };
        {
            std::vector<std::jthread> others;
            for (int i = 1; i < conversation.variant.n_sessions; ++i) {
                others.emplace_back(serve);
            }
            serve();
        }
        if (failure) {
            std::rethrow_exception(failure);
        }
        return !is_cancelled;
    }

    bool write_case(Session& session, const Conversation& conversation, int number) {
        const Contender& contender =
            options_.contenders[static_cast<std::size_t>(number) % options_.contenders.size()];
        auto answers = compare(session, conversation, contender, observer_);
        if (!answers) {
            return false;
        }
        CompletedCase done{.run = id_,
                           .number = number,
                           .model = config_.model_path.string(),
                           .kernels = kernels_,
                           .contender = contender.name,
                           .strategy = contender.speculation.strategy,
                           .variant = describe(conversation),
                           .answers = std::move(*answers),
                           .flags = flags_of(number)};
        const std::lock_guard lock(mutex_);
        n_tokens_ += count_tokens(done);
        record_.add(std::move(done));
        observer_.progress(options_.n_tokens > 0 ? static_cast<double>(n_tokens_) /
                                                       static_cast<double>(options_.n_tokens)
                                                 : 1.0);
        return true;
    }

    // Empty for the CPU alone.
    std::string device_flag() const {
        const std::string devices = join(config_.devices, ",");
        return devices == "CPU" ? "" : concat("--device ", devices, ' ');
    }

    std::string flags_of(int number) const {
        return concat(device_flag(), "-c ", config_.n_ctx, " -t ", config_.n_threads, " -n ",
                      options_.n_predict, " --seed ", options_.seed, " --case ", number);
    }

    const ExactnessOptions& options_;
    RuntimeConfig config_;  // with the context, threads and devices filled in
    ExactnessRecord& record_;
    const CheckObserver& observer_;
    std::uint64_t seed_ = 0;
    std::string id_;
    std::string kernels_;
    std::mutex mutex_;  // of the record and the count, while a conversation is served
    std::int64_t n_tokens_ = 0;
};

}  // namespace

std::vector<Contender> exactness_contenders(Engine& engine) {
    std::vector<Contender> contenders = lossless_contenders(engine);
    std::ranges::move(eager_contenders(parts_of(engine)), std::back_inserter(contenders));
    return contenders;
}

void check_promises_exactness(Engine& engine) {
    const Engine::Impl& impl = impl_of(engine);
    const DeviceLimits limits = impl.limits();
    const int n_rows = std::min(impl.exact_rows, limits.exact_rows);
    if (n_rows < kMaxUbatch || !limits.has_exact_trees) {
        fail(
            "expected an engine whose passes of any size are bit-identical to single-row passes, "
            "found ",
            n_rows < kMaxUbatch ? concat("passes of up to ", n_rows, " rows that are")
                                : std::string("trees that are not"),
            "; `knap check` without --tokens tells near ties from mismatches");
    }
}

bool check_exactness(const ExactnessOptions& options,
                     ExactnessRecord& record,
                     const CheckObserver& observer) {
    return Run(options, record, observer).conversations();
}

}  // namespace knap
