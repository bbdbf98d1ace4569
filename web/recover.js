// The code field, and buttons that wait.
import "./parts/code-field.js";
import "./parts/wait.js";
