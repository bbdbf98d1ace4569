// Code fields, buttons that wait, and what has stopped so far.
import "./parts/code-field.js";
import "./parts/refresh.js";
import "./parts/wait.js";
