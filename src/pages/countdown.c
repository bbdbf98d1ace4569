/* Countdowns: the server writes what a module of the page then keeps true (web/parts/countdown.js). */
#include "base/clock.h"
#include "pages/page.h"

#define PRECISE_S 600

/* "4:12" in the last ten minutes, before that "about 11 minutes", "about 3 hours" or "about 29 days". */
static void add_left(struct page *p, int64_t seconds, struct buf *out)
{
    static const struct {
        int64_t below, unit;
        enum text words;
    } units[] = {{INT64_C(90) * 60, 60, TEXT_PAGE_ABOUT_MINUTES},
                 {INT64_C(48) * 3600, 3600, TEXT_PAGE_ABOUT_HOURS},
                 {INT64_MAX, 86400, TEXT_PAGE_ABOUT_DAYS}};
    size_t at = 0;
    if (seconds <= PRECISE_S) {
        buf_addf(out, "%lld:%02lld", (long long)seconds / 60, (long long)seconds % 60);
        return;
    }
    while (seconds >= units[at].below)
        at++;
    AUTO(json) json_t *values = json_pack("{s:I}", "n", (json_int_t)((seconds + units[at].unit - 1) / units[at].unit));
    text_fill_sentence(&p->reader, units[at].words, values, out);
}

void page_set_countdown(struct page *p, const char *name, int64_t until_us, int64_t now_us)
{
    char until[25], now[25];
    int64_t seconds = until_us > now_us ? (until_us - now_us + 999999) / 1000000 : 0;
    if (!seconds)
        return;
    AUTO(buf) struct buf left = buf_new(1024);
    add_left(p, seconds, &left);
    clock_format_ms(until_us, until);
    clock_format_ms(now_us, now);
    struct str words = buf_str(&left);
    page_set(p, name, json_pack("{s:s,s:s,s:s%}", "until", until, "now", now, "left", words.at, words.len));
}
