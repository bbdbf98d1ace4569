DROP TABLE reclaim.verification_codes;
DROP TABLE reclaim.auth_cleanup_log;
DROP FUNCTION reclaim.release_cleanup_lock(text);
DROP FUNCTION reclaim.require_cleanup_lock(text);
DROP FUNCTION reclaim.acquire_cleanup_lock(text);
DROP FUNCTION reclaim.generate_lock_id(text, text);
DROP FUNCTION reclaim.email_to_lock_id(text);
DROP FUNCTION reclaim.text_to_lock_id(text);
DROP FUNCTION reclaim.normalise_email(text);
