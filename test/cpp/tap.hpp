/* tap.hpp - what the C++ tests share: cases, checks, and both ways of the wrapper as one. */
#ifndef WEIR_TEST_CPP_TAP_HPP
#define WEIR_TEST_CPP_TAP_HPP

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <thread>
#include <string>
#include <vector>
#include <weir/weir.hpp>

/* Ends the program: a test that goes on would hang, or hide the first reason. */
#define CHECK(what)                                                                               \
    do {                                                                                          \
        if (!(what)) {                                                                            \
            std::printf("Bail out! %s:%d: %s\n", __FILE__, __LINE__, #what);                       \
            std::fflush(stdout);                                                                  \
            std::abort();                                                                         \
        }                                                                                         \
    } while (0)

constexpr std::chrono::seconds patience{60};

#ifdef WEIR_NO_EXCEPTIONS
/* The value of a call that must succeed. */
template <class T>
T must(weir::result<T> r)
{
    if (!r)
        std::printf("# %s\n", r.error().what());
    CHECK(r.ok());
    if constexpr (!std::is_void_v<T>)
        return std::move(r.value());
}
/* How a call fails; an Error with WEIR_OK: it did not. */
template <class F>
weir::Error error_of(F f)
{
    auto r = f();
    return r ? weir::Error(WEIR_OK, "") : r.error();
}
#else
template <class T>
T must(T value)
{
    return value;
}
template <class F>
weir::Error error_of(F f)
{
    try {
        (void)f();
        return weir::Error(WEIR_OK, "");
    } catch (const weir::Error &why) {
        return why;
    }
}
#endif

/* A number that threads count up, and wait for. */
class Counter {
public:
    void add()
    {
        std::lock_guard<std::mutex> guard(lock_);
        n_++;
        changed_.notify_all();
    }
    void wait_for(int n)
    {
        std::unique_lock<std::mutex> guard(lock_);
        CHECK(changed_.wait_for(guard, patience, [&] { return n_ >= n; }));
    }
    int get()
    {
        std::lock_guard<std::mutex> guard(lock_);
        return n_;
    }

private:
    std::mutex              lock_;
    std::condition_variable changed_;
    int                     n_ = 0;
};

struct Case {
    const char *name;
    void (*run)();
};

inline int run_cases(const std::vector<Case> &cases)
{
    std::printf("1..%zu\n", cases.size());
    for (size_t i = 0; i < cases.size(); i++) {
        cases[i].run();
        std::printf("ok %zu - %s\n", i + 1, cases[i].name);
        std::fflush(stdout);
    }
    return 0;
}

#endif
