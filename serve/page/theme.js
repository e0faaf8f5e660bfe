// Sets the colours before the page is drawn: those that the user chose, or else the system's.
// A classic script, because modules run after the first drawing.
const systemTheme = matchMedia("(prefers-color-scheme: dark)");

function showTheme() {
  const chosen = localStorage.getItem("knap.theme");
  document.documentElement.dataset.theme = chosen || (systemTheme.matches ? "dark" : "light");
}

systemTheme.addEventListener("change", showTheme);
showTheme();
