#include "server/settings_http.h"

#include "base/clock.h"
#include "settings/settings.h"

#define SETTINGS_BYTES_MAX 262144

void settings_handle(struct request *rq, const struct caller *caller, void *settings)
{
    (void)caller;
    const _Atomic(const struct settings *) *now = settings;
    AUTO(buf) struct buf out = buf_new(SETTINGS_BYTES_MAX);
    settings_write_json(atomic_load(now), clock_is_sandbox(), &out);
    reply_json(rq, 200, buf_str(&out));
}
