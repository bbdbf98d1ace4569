// The page of a certificate: a button that prints it, and an erasure under way that is read again.
import "./parts/refresh.js";

const print = document.querySelector("[data-print]");
if (print) {
  print.hidden = false;
  print.addEventListener("click", () => window.print());
}
