/* future.hpp - Future<T>, the answer to an _async call. */
#ifndef WEIR_CPP_FUTURE_HPP
#define WEIR_CPP_FUTURE_HPP

#include "weir/cpp/base.hpp"

WEIR_CPP_BEGIN

/* Move-only. If it is destroyed before it is done, the call still happens and its answer is thrown
 * away. */
template <class T>
class Future {
public:
    /* What a call fills, and what is made of it. */
    struct State {
        virtual ~State() = default;
        virtual T take() = 0;
        weir_future *future = nullptr;
    };

    explicit Future(std::unique_ptr<State> state) : state_(std::move(state)) {}
    Future(Future &&) noexcept = default;
    Future &operator=(Future &&other) noexcept
    {
        if (this != &other) {
            release();
            state_ = std::move(other.state_);
        }
        return *this;
    }
    ~Future() { release(); }

    bool done() const { return weir_future_done(state_->future); }

    /* The answer; waits for it. WEIR_ETIMEOUT: get() can be called again. After it has given the
     * answer, a Future is empty. */
    outcome<T> get(milliseconds timeout = forever)
    {
        weir_error err = {};
        weir_code rc = weir_future_wait(state_->future, timeout.count(), &err);
        if (rc)
            return detail::failed<T>(Error(err));
        std::unique_ptr<State> state = std::move(state_);
        weir_future_free(state->future);
        return outcome<T>(state->take());
    }

    /* Have fn(result<T>) called on the queue's callback thread: std::move(f).then(fn). It must not
     * throw. */
    template <class F>
    void then(F fn) &&
    {
        struct Then {
            std::unique_ptr<State> state;
            F                      fn;
        };
        weir_future *future = state_->future;
        auto *t = new Then{std::move(state_), std::move(fn)};
        weir_future_then(future, [](weir_code rc, const weir_error *err, void *ctx) noexcept {
            std::unique_ptr<Then> then(static_cast<Then *>(ctx));
            if (rc)
                then->fn(result<T>(Error(*err)));
            else
                then->fn(result<T>(then->state->take()));
            weir_future_free(then->state->future);
        }, t);
    }

private:
    void release()
    {
        if (state_)
            weir_future_free(state_->future);
        state_.reset();
    }
    std::unique_ptr<State> state_;
};

namespace detail {

/* start(out, &future, &err) begins the call; take(out) makes the answer. */
template <class T, class Out, class Start, class Take>
outcome<Future<T>> begin(Out out, Start start, Take take)
{
    struct Held : Future<T>::State {
        Held(Out o, Take t) : out(std::move(o)), give(std::move(t)) {}
        T    take() override { return give(out); }
        Out  out;
        Take give;
    };
    auto       held = std::make_unique<Held>(std::move(out), std::move(take));
    weir_error err = {};
    if (start(held->out, &held->future, &err))
        return failed<Future<T>>(Error(err));
    return outcome<Future<T>>(Future<T>(std::move(held)));
}

} /* namespace detail */

WEIR_CPP_END
#endif
