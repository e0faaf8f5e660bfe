#include "serve/api/json.h"

#include <set>
#include <vector>

#include "base/quoted.h"
#include "serve/api/error.h"

namespace knap {
namespace {

constexpr int kMaxDepth = 64;
// An ordered object searches its members one by one for every new one, so a body of millions would
// take hours.
constexpr std::size_t kMaxMembers = 4096;        // of one object
constexpr std::size_t kMaxTotalMembers = 65536;  // of a body

// Watches the parser: it stops a body as soon as it is one that we refuse.
class Watch {
  public:
    void see(int depth, Json::parse_event_t event, const Json& value) {
        switch (event) {
            case Json::parse_event_t::object_start:
                check_depth(depth);
                keys_.emplace_back();
                break;
            case Json::parse_event_t::array_start:
                check_depth(depth);
                break;
            case Json::parse_event_t::key:
                add_key(value.get_ref<const std::string&>());
                break;
            case Json::parse_event_t::object_end:
                keys_.pop_back();
                break;
            default:
                break;
        }
    }

  private:
    static void check_depth(int depth) {
        if (depth >= kMaxDepth) {
            throw RequestError(
                {.message = concat("expected JSON of at most ", kMaxDepth, " levels, found more")});
        }
    }

    void add_key(const std::string& key) {
        std::set<std::string>& keys = keys_.back();
        if (!keys.insert(key).second) {
            throw RequestError({.message = concat("expected every key once in an object, found ",
                                                  in_quotes(key), " twice")});
        }
        if (keys.size() > kMaxMembers || ++n_members_ > kMaxTotalMembers) {
            throw RequestError(
                {.message = concat("expected at most ", kMaxMembers, " members in an object and ",
                                   kMaxTotalMembers, " in all, found more")});
        }
    }

    std::vector<std::set<std::string>> keys_;  // of the objects that are open
    std::size_t n_members_ = 0;
};

}  // namespace

Json parse_request_json(std::string_view text) {
    Watch watch;
    try {
        return Json::parse(text, [&](int depth, Json::parse_event_t event, Json& value) {
            watch.see(depth, event, value);
            return true;
        });
    } catch (const Json::exception& error) {
        // "[json.exception.parse_error.101] parse error at line 1, ...": the library's number says
        // nothing to a client.
        const std::string_view what = error.what();
        const std::size_t end = what.find("] ");
        throw RequestError(
            {.message = concat("expected valid JSON in the body, found: ",
                               printable(end == what.npos ? what : what.substr(end + 2), 300))});
    }
}

std::string to_text(const Json& value) {
    return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace knap
