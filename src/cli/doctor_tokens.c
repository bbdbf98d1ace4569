#include "cli/doctor_tokens.h"

#include <stdio.h>

#include "client/client.h"
#include "credentials/key_reader.h"

void doctor_check_tokens(const struct settings *s, finding_handler *each, void *context)
{
    static const struct digest any_key; /* Reclaim's own tokens are not looked at */
    AUTO(buf) struct buf set = buf_new(CLIENT_BODY_MAX + 1);
    AUTO(jwt_keys) struct jwt_keys *keys = NULL;
    struct why why = {""};
    char sentence[sizeof why.text + 200];
    if (!s->jwt_secret && !s->jwks_file && !s->jwks_url) {
        each(context,
             &(struct finding){SEVERITY_OK, "tokens: Reclaim's own only; RECLAIM_JWKS_URL names the keys of your "
                                            "identity provider"});
        return;
    }
    enum err e = s->jwks_url ? key_set_fetch(s->jwks_url, &set, &why) : OK;
    if (!e)
        e = settings_token_keys(s, &any_key, s->jwks_url ? buf_str(&set) : (struct str){0}, &keys, &why);
    if (e) {
        (void)snprintf(sentence, sizeof sentence, "%s: no token of your identity provider can be verified", why.text);
        each(context, &(struct finding){SEVERITY_FAILURE, sentence});
        return;
    }
    (void)snprintf(sentence, sizeof sentence, "tokens: %zu key%s of your identity provider", jwt_keys_count(keys),
                   jwt_keys_count(keys) == 1 ? "" : "s");
    each(context, &(struct finding){SEVERITY_OK, sentence});
}
