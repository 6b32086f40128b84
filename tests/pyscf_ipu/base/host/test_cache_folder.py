"""Programs on disk are native code: whose folder is used, and whose is refused."""

import os
import stat

import pytest

from pyscf_ipu import enable_disk_cache
from pyscf_ipu.base.errors import UntrustedCache
from pyscf_ipu.base.host import cache_folder
from pyscf_ipu.base.host.cache_folder import SHARED, checked_folder, distrust, make_private
from pyscf_ipu.base.host.disk_cache import kept_in
from pyscf_ipu.commands import cli
from pyscf_ipu.nanodft import command as nanodft
from pyscf_ipu.settings import Settings
from qm1b.engine import factory
from qm1b.errors import UserError
from qm1b.settings import RunSettings

USER, OTHER, GROUP = 1000, 1001, 50


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def umask_of_nothing():
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def open_folder(tmp_path, monkeypatch):
    """A folder that everybody may write to, as the one that the environment names."""
    path = tmp_path / "open"
    path.mkdir()
    path.chmod(0o777)
    monkeypatch.setenv("PYSCF_IPU_CACHE", str(path))
    monkeypatch.delenv(SHARED, raising=False)
    return path


@pytest.mark.usefixtures("umask_of_nothing")
def test_a_new_folder_is_for_its_owner_alone(tmp_path, monkeypatch):
    """Whatever the umask; those above it too, or others could put another in its place."""
    monkeypatch.setenv("PYSCF_IPU_CACHE", "off")  # and as it was, afterwards
    path = enable_disk_cache(tmp_path / "a" / "b" / "cache")
    assert kept_in() == path
    for folder in (path, path.parent, path.parent.parent):
        assert mode(folder) == 0o700


def test_an_older_folder_of_ours_stays_as_it_is(tmp_path):
    for allowed in (0o755, 0o700, 0o500, 0o711):
        tmp_path.chmod(allowed)
        assert checked_folder(tmp_path) == tmp_path
        assert mode(tmp_path) == allowed
    tmp_path.chmod(0o700)


@pytest.mark.parametrize(
    ("owner", "bits", "private", "why", "mend"),
    [
        (USER, 0o700, False, None, None),
        (USER, 0o755, False, None, None),
        (USER, 0o775, True, None, None),  # a group of one's own: umask 002 on most systems
        (USER, 0o2770, True, None, None),
        (0, 0o755, False, None, None),  # root may do anything anyway
        (USER, 0o775, False, "written to by its group (gid 50)", "chmod g-w {}"),
        (0, 0o775, False, "written to by its group", "chmod g-w {}"),
        (USER, 0o777, True, "written to by everybody", "chmod go-w {}"),
        (USER, 0o702, True, "written to by everybody", "chmod go-w {}"),
        (0, 0o1777, True, "written to by everybody", "chmod go-w {}"),  # /tmp itself
        (OTHER, 0o700, True, "another user (uid 1001, you are 1000)", "sudo chown -R 1000 {}"),
        (65534, 0o755, True, "another user (uid 65534", "sudo chown -R 1000 {}"),  # squashed
    ],
)
def test_who_is_trusted(owner, bits, private, why, mend):
    info = os.stat_result((stat.S_IFDIR | bits, 0, 0, 1, owner, GROUP, 0, 0, 0, 0))
    found = distrust(info, USER, lambda group: private and group == GROUP)
    if why is None:
        assert found is None
    else:
        assert found is not None
        assert why in found[0]
        assert found[1] == mend


def test_root_runs_no_code_of_others():
    info = os.stat_result((stat.S_IFDIR | 0o700, 0, 0, 1, USER, GROUP, 0, 0, 0, 0))
    assert distrust(info, 0, lambda _: True) is not None


def test_the_refusal_says_how_to_mend_it(open_folder):
    words = rf"{open_folder}, can be .* native code.*`chmod go-w {open_folder}`.*PYSCF_IPU_CACHE "
    with pytest.raises(UntrustedCache, match=words):
        enable_disk_cache()
    with pytest.raises(UserError, match=words):
        factory.build(factory.DEFAULT, RunSettings(Settings(), 1))


@pytest.mark.usefixtures("open_folder")
@pytest.mark.parametrize(
    "run",
    [lambda: cli.main(["profile", "--smiles", "O"]), lambda: nanodft.main(["H 0 0 0; H 0 0 0.74"])],
)
def test_the_commands_end_with_the_sentence(run, capsys):
    assert run() == 2
    assert "chmod go-w" in capsys.readouterr().err


@pytest.mark.parametrize(
    "run",
    [
        lambda: cli.main(["profile", "--smiles", "O"]),
        lambda: cli.main(["rks", "O"]),
        lambda: nanodft.main(["H 0 0 0; H 0 0 0.74"]),
    ],
)
def test_a_folder_that_cannot_be_made_is_one_sentence(run, tmp_path, monkeypatch, capsys):
    (tmp_path / "file").touch()
    monkeypatch.setenv("PYSCF_IPU_CACHE", str(tmp_path / "file" / "cache"))
    assert run() == 2
    assert "compiled programs cannot be kept in" in capsys.readouterr().err


def test_a_folder_that_is_shared_on_purpose(open_folder, monkeypatch):
    monkeypatch.setenv(SHARED, "on")
    assert checked_folder(open_folder) == open_folder
    monkeypatch.setenv(SHARED, "yes")
    with pytest.raises(ValueError, match=f"{SHARED}=yes: set it to on or off"):
        checked_folder(open_folder)


def test_a_link_is_followed_once(tmp_path, open_folder):
    """What is checked is what is used, wherever the link leads later."""
    (tmp_path / "real").mkdir(mode=0o700)
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "real")
    assert checked_folder(link) == tmp_path / "real"
    link.unlink()
    link.symlink_to(open_folder)
    with pytest.raises(UntrustedCache, match="everybody"):
        checked_folder(link)
    link.unlink()
    link.symlink_to(tmp_path / "not yet")
    assert checked_folder(link) == tmp_path / "not yet"
    assert mode(tmp_path / "not yet") == 0o700


def test_a_file_in_the_place_of_a_folder(tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "cache"):
        with pytest.raises(OSError, match=r"[Nn]ot a directory") as error:
            make_private(path)
        assert error.value.filename
        assert error.value.strerror


def test_a_user_without_a_name_has_no_group_of_its_own(monkeypatch):
    monkeypatch.setattr(cache_folder.os, "geteuid", lambda: 2**31 - 7)
    assert not cache_folder.is_private_group(0)
