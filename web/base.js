// On every page: times in the reader's own time zone, and countdowns.
import "./parts/times.js";
import "./parts/countdown.js";
