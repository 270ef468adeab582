/* weir.hpp - the C API of weir (weir/weir.h) for C++17: handles that release themselves, lambdas as
 * handlers, std::string_view in and std::string out, std::chrono for time. Header-only; link with
 * libweir. docs/cpp.md is the guide.
 *
 *     weir::Queue queue("sqlite:jobs.db");
 *     queue.process("mail", [](weir::Job &job) { send(job.data()); });
 *     queue.add(weir::Spec("mail").data(R"({"to":"ann@example.org"})").attempts(3));
 *
 * Functions have the names of the C API without "weir_"; its enumerators are used as they are. c()
 * gives the C handle, for what is not wrapped. A failure is thrown as weir::Error; with
 * WEIR_NO_EXCEPTIONS calls return weir::result<T> (weir/cpp/base.hpp). */
#ifndef WEIR_WEIR_HPP
#define WEIR_WEIR_HPP

#include "weir/cpp/base.hpp"
#include "weir/cpp/job.hpp"
#include "weir/cpp/future.hpp"
#include "weir/cpp/query.hpp"
#include "weir/cpp/queue.hpp"
#include "weir/cpp/bus.hpp"

#endif
