/* base.hpp - errors of the C++ wrapper: exceptions, or results by choice. Include weir/weir.hpp.
 *
 * A call that can fail returns outcome<T>. With exceptions that is T, and a failure is thrown as
 * weir::Error. With WEIR_NO_EXCEPTIONS (defined before the include, or because the compiler has
 * exceptions off) it is result<T>. Translation units of one program may differ: the classes of
 * each way are in an inline namespace of their own. */
#ifndef WEIR_CPP_BASE_HPP
#define WEIR_CPP_BASE_HPP

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "weir/weir.h"

#if __cplusplus < 201703L
#error "weir/weir.hpp needs C++17; weir/weir.h works from C++11 on"
#endif

#ifndef __cpp_exceptions
#ifndef WEIR_NO_EXCEPTIONS
#define WEIR_NO_EXCEPTIONS
#endif
#define WEIR_CPP_BEGIN namespace weir { inline namespace codes {
#elif defined(WEIR_NO_EXCEPTIONS)
#define WEIR_CPP_BEGIN namespace weir { inline namespace codes_and_catch {
#else
#define WEIR_CPP_BEGIN namespace weir { inline namespace exceptions {
#endif
#define WEIR_CPP_END } }

WEIR_CPP_BEGIN

using std::chrono::milliseconds;
using moment = std::chrono::time_point<std::chrono::system_clock, milliseconds>;

constexpr milliseconds forever{WEIR_FOREVER};

/* What went wrong: a weir_error as an exception. */
class Error : public std::runtime_error {
public:
    explicit Error(const weir_error &err)
        : std::runtime_error(err.msg), code_(err.code), field_(err.field)
    {
    }
    Error(weir_code code, const std::string &text) : std::runtime_error(text), code_(code) {}
    Error(const weir_error &err, weir_failure failure, int failure_code)
        : Error(err)
    {
        failure_ = failure;
        failure_code_ = failure_code;
    }

    weir_code code() const noexcept { return code_; }
    const std::string &field() const noexcept { return field_; }    /* "priority"; "": none */
    bool may_retry() const noexcept { return weir_code_may_retry(code_); }

    /* Of a request on the bus: why there is no reply, and the recipient's own number. */
    weir_failure failure() const noexcept { return failure_; }
    int failure_code() const noexcept { return failure_code_; }

    /* Print "PROGRAM: MESSAGE" and return the exit status: the last line of a main(). */
    int complain() const
    {
        weir_error err = {};
        weir_fail(&err, code_, "%s", what());
        return weir_complain(&err);
    }

private:
    weir_code    code_;
    std::string  field_;
    weir_failure failure_ = WEIR_FAILURE_NONE;
    int          failure_code_ = -1;
};

namespace detail {
/* For result::value() without a value: a bug of the caller, in any build. */
[[noreturn]] inline void no_value(const char *what)
{
    std::fprintf(stderr, "weir::result: no value: %s\n", what);
    std::abort();
}
} /* namespace detail */

/* A value, or an Error. */
template <class T>
class [[nodiscard]] result {
public:
    result(T value) : is_(std::in_place_index<0>, std::move(value)) {}
    result(Error error) : is_(std::in_place_index<1>, std::move(error)) {}

    bool ok() const noexcept { return is_.index() == 0; }
    explicit operator bool() const noexcept { return ok(); }
    weir_code code() const noexcept { return ok() ? WEIR_OK : error().code(); }
    const Error &error() const noexcept { return *std::get_if<1>(&is_); }      /* !ok() */

    T &value() &
    {
        if (!ok())
            detail::no_value(error().what());
        return *std::get_if<0>(&is_);
    }
    const T &value() const & { return const_cast<result *>(this)->value(); }
    T value() && { return std::move(value_of(*this)); }
    T &operator*() & { return value(); }
    T operator*() && { return std::move(value_of(*this)); }
    T *operator->() { return &value(); }

private:
    static T &value_of(result &r) { return r.value(); }
    std::variant<T, Error> is_;
};

template <>
class [[nodiscard]] result<void> {
public:
    result() = default;
    result(Error error) : error_(std::move(error)) {}

    bool ok() const noexcept { return !error_; }
    explicit operator bool() const noexcept { return ok(); }
    weir_code code() const noexcept { return ok() ? WEIR_OK : error_->code(); }
    const Error &error() const noexcept { return *error_; }
    void value() const
    {
        if (error_)
            detail::no_value(error_->what());
    }

private:
    std::optional<Error> error_;
};

#ifdef WEIR_NO_EXCEPTIONS
template <class T> using outcome = result<T>;
#else
template <class T> using outcome = T;
#endif

namespace detail {

template <class T>
outcome<T> failed(Error error)
{
#ifdef WEIR_NO_EXCEPTIONS
    return outcome<T>(std::move(error));
#else
    throw error;
#endif
}

/* The outcome of a call: `make` gives the value if it succeeded. */
template <class Make>
auto give(weir_code rc, const weir_error &err, Make make) -> outcome<decltype(make())>
{
    using T = decltype(make());
    if (rc)
        return failed<T>(Error(err));
    if constexpr (std::is_void_v<T>) {
        make();
        return outcome<T>();
    } else {
        return outcome<T>(make());
    }
}

inline outcome<void> give(weir_code rc, const weir_error &err)
{
    return give(rc, err, [] {});
}

/* A text for C. A zero byte in it would cut it silently: it becomes a byte that is no UTF-8, which
 * every call rejects. */
inline std::string text(std::string_view from)
{
    std::string s(from);
    for (char &c : s)
        if (!c)
            c = '\xff';
    return s;
}

inline std::string copy(const char *s, size_t len)
{
    return s ? std::string(s, len) : std::string();
}
inline std::string copy(const char *s) { return s ? std::string(s) : std::string(); }
inline const char *or_null(const std::string &s) { return s.empty() ? nullptr : s.c_str(); }

/* A text from C's malloc(). */
inline std::string adopt(char *s)
{
    std::string out = copy(s);
    std::free(s);
    return out;
}

inline int64_t ms_of(moment at) { return at.time_since_epoch().count(); }
inline moment moment_of(int64_t ms) { return moment(milliseconds(ms)); }

struct Free {
    void operator()(weir_job *p) const { weir_job_free(p); }
    void operator()(weir_lines *p) const { weir_lines_free(p); }
    void operator()(weir_stats *p) const { weir_stats_free(p); }
    void operator()(weir_schedules *p) const { weir_schedules_free(p); }
    void operator()(weir_page *p) const { weir_page_free(p); }
    void operator()(weir_future *p) const { weir_future_free(p); }
};
template <class T> using Owned = std::unique_ptr<T, Free>;

/* Functions that a thread may still be in, after a stop that did not wait for it: they are kept
 * for good. */
inline void keep_for_good(std::shared_ptr<void> what)
{
    static std::mutex lock;
    static auto *kept = new std::vector<std::shared_ptr<void>>();
    std::lock_guard<std::mutex> guard(lock);
    kept->push_back(std::move(what));
}

} /* namespace detail */

WEIR_CPP_END
#endif
