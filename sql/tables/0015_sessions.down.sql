DROP TABLE reclaim.sessions, reclaim.sign_in_codes;
DELETE FROM reclaim.work_items WHERE kind = 'mail' AND payload ->> 'template' = 'sign-in-code';
