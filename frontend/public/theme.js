// Sets the theme that was chosen last; "system" (no entry) follows prefers-color-scheme. See src/app/theme.ts.
(function () {
  try {
    var chosen = localStorage.getItem("highwater.theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch (error) {
    console.warn("The theme cannot be remembered: storage is switched off.", error);
  }
})();
