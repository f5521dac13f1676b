#!/bin/bash
# The first process of a node, in namespaces of its own: node.sh FOLDER NAME ROLE PYTHON CHECKOUT. It makes a root that shows
# nothing of the computer but its programs, waits for a line on standard input (the network is there), starts the node's services, and says
# "ready". Everything on the node ends with it.
set -eu
folder=$1 name=$2 role=$3 python=$4 checkout=$5
root=$folder/nodes/$name/root
umask 022
hostname "$name"
mount -t tmpfs -o size=16m,mode=755 root "$root"
cd "$root"
mkdir -p usr etc home project scratch opt proc sys dev run tmp var old root mnt
mount --rbind /usr usr
for part in bin sbin lib lib32 lib64 libx32; do [ -L "/$part" ] && cp -d "/$part" . || { [ ! -d "/$part" ] || { mkdir "$part" && mount --rbind "/$part" "$part"; }; }; done
mount --bind "$folder/etc" etc
mount --bind "$folder/home" home
mount --bind "$folder/project" project
mount --bind "$folder/nodes/$name/scratch" scratch
mount --bind "$folder/nodes/$name/var" var
mount -t proc proc proc
mount --rbind /sys sys
mount -t tmpfs -o size=1m,mode=755 dev dev
for device in null zero full random urandom tty; do : >dev/$device && mount --bind /dev/$device dev/$device; done
for card in 0 1 2 3; do : >dev/gpu$card && mount --bind /dev/null dev/gpu$card; done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
mount -t tmpfs -o size=512m,mode=1777 shm dev/shm
mount -t tmpfs -o size=8m,mode=755 run run
mount -t tmpfs -o size=1g,mode=1777 tmp tmp
# Compute nodes have a Python with torch for the module: this computer's own, with the packages of the tests. On the login node
# the same Python is where somebody has installed the course, which is a checkout.
case $role in compute) place=sw ;; login) place=course ;; *) place="" ;; esac
if [ -n "$place" ]; then
  mkdir -p opt/$place
  mount --bind "$(sed -n 's/^site-packages = //p' "$folder/sw/pytorch/pyvenv.cfg")" "$(echo "$folder"/sw/pytorch/lib/python*/site-packages)"
  mount --rbind "$folder/sw" opt/$place
  case $python in /usr | /usr/*) ;; *) mkdir -p ".$python" && mount --bind "$python" ".$python" ;; esac
fi
if [ "$role" = login ]; then mkdir opt/checkout && mount --bind "$checkout" opt/checkout; fi
pivot_root . old
umount -l old
cd /
rmdir old
mkdir -p run/munge run/sshd run/mysqld run/slurmdbd
chown munge run/munge
chown slurm run/slurmdbd
read -r _
setpriv --reuid munge --regid munge --init-groups munged -F --key-file /etc/munge/munge.key --socket /run/munge/munge.socket.2 \
  --pid-file /run/munge/pid --log-file /run/munge/log --seed-file /run/munge/seed &
until [ -S /run/munge/munge.socket.2 ]; do sleep 0.05; done
case $role in
controller)
  chown slurm /var/lib/slurm /var/log
  if [ -e /etc/slurm/slurmdbd.conf ]; then
    mkdir -p /var/mysql
    chown mysql /var/mysql run/mysqld
    mariadb-install-db --no-defaults --user=mysql --datadir=/var/mysql --skip-test-db >/var/log/mysql-install.log 2>&1
    mariadbd --no-defaults --user=mysql --datadir=/var/mysql --socket=/run/mysqld/mysqld.sock --skip-networking \
      --innodb-buffer-pool-size=32M --innodb-lock-wait-timeout=900 >/var/log/mysql.log 2>&1 &
    sql() { mariadb --no-defaults -S /run/mysqld/mysqld.sock "$@" 2>/dev/null; }
    until sql -e 'select 1' >/dev/null; do sleep 0.1; done
    sql -e 'create user slurm@localhost identified via unix_socket; grant all on slurm_acct_db.* to slurm@localhost'
    setpriv --reuid slurm --regid slurm --init-groups slurmdbd -D >/var/log/slurmdbd.out 2>&1 &
    until sacctmgr -n show cluster >/dev/null 2>&1; do sleep 0.1; done
    {
      sacctmgr -i add cluster uni
      for account in abc123 prof dead; do sacctmgr -i add account "$account"; done
      sacctmgr -i modify account dead set GrpSubmitJobs=0
      sacctmgr -i add qos course set MaxWall=00:20:00
      sacctmgr -i add user stud account=dead
      sacctmgr -i add user stud,dora account=abc123
      sacctmgr -i modify user stud,dora set qos=normal,course
      sacctmgr -i add user prof account=prof
    } >/var/log/sacctmgr.log 2>&1
  fi
  setpriv --reuid slurm --regid slurm --init-groups slurmctld -D >/var/log/slurmctld.out 2>&1 &
  ;;
login) "$(command -v sshd)" -D -f /etc/ssh/sshd_config -E /var/log/sshd.log & ;; # for those who come from inside
compute) slurmd -D -N "$name" >/var/log/slurmd.out 2>&1 & ;;
esac
echo ready
while :; do
  sleep 3600 &
  wait $!
done
