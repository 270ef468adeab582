/* civil.h - dates of the Gregorian calendar as numbers of days since 1970-01-01. Pure functions.
 * Months are 1 to 12, days of a month 1 to 31, weekdays 0 to 6 from Sunday on. Years are 0 or
 * later. */
#ifndef WEIR_CORE_CIVIL_H
#define WEIR_CORE_CIVIL_H

#include <stdbool.h>
#include <stdint.h>

enum { WEIR__DAY_S = 86400 };

typedef struct weir_date {
    int year, month, day;
} weir_date;

static inline bool weir__is_leap(int year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static inline int weir__days_in_month(int year, int month)
{
    return month == 2 ? 28 + weir__is_leap(year) : 30 + ((month + (month >> 3)) & 1);
}

/* The year is taken to begin in March, so that the leap day is its last. */
static inline int64_t weir__days_of(int year, int month, int day)
{
    int64_t y = year - (month <= 2);
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t of_era = y - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static inline weir_date weir__date_of(int64_t days)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    int64_t of_era = days - era * 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t m = (5 * of_year + 2) / 153;
    int     month = (int)(m < 10 ? m + 3 : m - 9);
    return (weir_date){ (int)(year + era * 400) + (month <= 2), month,
                        (int)(of_year - (153 * m + 2) / 5 + 1) };
}

static inline int weir__weekday_of(int64_t days)
{
    return (int)(((days + 4) % 7 + 7) % 7);
}

/* Rounded down, also below zero. */
static inline int64_t weir__div_floor(int64_t n, int64_t by)
{
    return n / by - (n % by < 0);
}

#endif
